import { TimerObject, type BuiltIns, type Drain } from "@dueline/durable-object/kinds";

/** A shard that one worker at a time may write to; the workers live elsewhere. */
export class Shard extends TimerObject<Record<string, never>> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS uploads (id TEXT PRIMARY KEY, epoch INTEGER)");
    this.#sql.exec("CREATE TABLE IF NOT EXISTS entries (text TEXT)");
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return {
      leases: {
        // A lease whose time is over goes once the uploads of its holder have ended.
        drain: ({ epoch }): Drain => {
          const { left } = this.#sql.exec<{ left: number }>("SELECT COUNT(*) AS left FROM uploads WHERE epoch = ?", epoch).one();
          return left === 0 ? "drained" : { watermark: 0 };
        },
      },
    };
  }

  /** The epoch of a worker's turn; `null` while another has it. */
  async take(worker: string): Promise<number | null> {
    const { outcome, lease } = await this.timers.leases.grant("writer", { owner: worker, term: 30_000 });
    return outcome === "granted" ? lease.epoch : null;
  }

  /** Called every ten seconds by whoever has the turn. Whether it still has. */
  async keep(epoch: number): Promise<boolean> {
    return (await this.timers.leases.renew("writer", { epoch, term: 30_000 })).outcome === "renewed";
  }

  /** Writes only as long as the turn is the worker's, however late its request comes. */
  async append(epoch: number, text: string): Promise<boolean> {
    return this.timers.leases.fenced("writer", { epoch }, () => {
      this.#sql.exec("INSERT INTO entries VALUES (?)", text);
    });
  }
}
