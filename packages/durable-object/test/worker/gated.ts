// A blog whose posts wait for images that lie in other objects. A second release of one post would be a second row.
import { TimerObject, type BuiltIns } from "@dueline/durable-object/kinds";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { router } from "./router.js";

interface Env {
  readonly Images: DurableObjectNamespace<Images>;
}

/** Images of one album; an image is there once it was shown. */
export class Images extends DurableObject<unknown> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS images (name TEXT PRIMARY KEY)");
  }

  areThere(names: readonly string[]): boolean[] {
    return names.map((name) => this.#sql.exec("SELECT 1 FROM images WHERE name = ?", name).toArray().length > 0);
  }

  show(name: string): void {
    this.#sql.exec("INSERT INTO images VALUES (?)", name);
  }
}

export class Blog extends TimerObject<Record<string, never>, Env> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS drafts (name TEXT PRIMARY KEY); CREATE TABLE IF NOT EXISTS posts (name TEXT NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS looks (place TEXT, first TEXT)",
    );
  }

  #album(name: string): DurableObjectStub<Images> {
    return this.env.Images.get(this.env.Images.idFromName(name));
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return {
      gated: {
        look: ({ place, keys }) => {
          this.#sql.exec("INSERT INTO looks VALUES (?, ?)", place, keys[0]);
          return this.#album(place).areThere([...keys]);
        },
        release: (record) => () => {
          this.#sql.exec("DELETE FROM drafts WHERE name = ?", record);
          this.#sql.exec("INSERT INTO posts VALUES (?)", record);
        },
      },
    };
  }

  override async fetch(request: Request): Promise<Response> {
    const { gated } = this.timers;
    return answer(request, async ({ op, args }) => {
      const [name = "", ...more] = args as string[];
      switch (op) {
        case "draft": {
          const waitsFor = more.map((image) => {
            const [place = "", key = ""] = image.split("/");
            return { place, key };
          });
          const effects = () => void this.#sql.exec("INSERT INTO drafts VALUES (?)", name);
          return gated.add(name, waitsFor, { effects });
        }
        case "show":
          return this.#album(name).show(more[0] ?? "");
        case "lookNow":
          return gated.lookNow(name);
        case "seen": {
          const names = (table: string) => this.#sql.exec(`SELECT name FROM ${table} ORDER BY name`).toArray().map((row) => row.name);
          return {
            drafts: names("drafts"),
            posts: names("posts"),
            looks: this.#sql.exec("SELECT * FROM looks ORDER BY rowid").toArray(),
          };
        }
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }
}

export default router;
