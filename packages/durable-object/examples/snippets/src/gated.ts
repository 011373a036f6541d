import { TimerObject, type BuiltIns } from "@dueline/durable-object/kinds";
import { DurableObject } from "cloudflare:workers";

interface Env {
  readonly ALBUMS: DurableObjectNamespace<Album>;
}

/** Images as they are uploaded. */
export class Album extends DurableObject<Env> {
  areThere(images: readonly string[]): boolean[] {
    const sql = this.ctx.storage.sql;
    sql.exec("CREATE TABLE IF NOT EXISTS images (name TEXT PRIMARY KEY)");
    return images.map((name) => sql.exec("SELECT 1 FROM images WHERE name = ?", name).toArray().length > 0);
  }
}

/** A blog whose posts appear when all their images are there. */
export class Blog extends TimerObject<Record<string, never>, Env> {
  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    const { ALBUMS } = this.env;
    return {
      gated: {
        // Asked of one album at a time, for eight images at most.
        look: ({ place, keys }) => ALBUMS.get(ALBUMS.idFromName(place)).areThere([...keys]),
        // Commits with the end of the wait.
        release: (post) => () => void this.ctx.storage.sql.exec("UPDATE posts SET state = 'out' WHERE name = ?", post),
      },
    };
  }

  /** Writes a draft that waits for its images, each given as album and name. */
  async draft(post: string, images: readonly (readonly [album: string, name: string])[]): Promise<void> {
    const waitsFor = images.map(([place, key]) => ({ place, key }));
    await this.timers.gated.add(post, waitsFor, {
      effects: () => {
        this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS posts (name TEXT PRIMARY KEY, state TEXT NOT NULL)");
        this.ctx.storage.sql.exec("INSERT INTO posts VALUES (?, 'draft')", post);
      },
    });
  }

  /** For an album that tells of a new image: the post need not wait for the next look. */
  async imageArrived(post: string): Promise<void> {
    await this.timers.gated.lookNow(post);
  }

  /** The draft is thrown away, and with it what it waited for. */
  async discard(post: string): Promise<void> {
    await this.timers.gated.remove(post, {
      effects: () => void this.ctx.storage.sql.exec("DELETE FROM posts WHERE name = ?", post),
    });
  }
}
