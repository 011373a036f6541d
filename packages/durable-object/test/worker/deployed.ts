// An object whose handlers change from one deployment to the next.
import { TimerObject, type Handlers } from "@dueline/durable-object";
import { answer } from "./answer.js";
import { timerRows } from "./rows.js";

export type Kinds = {
  known: undefined;
  moved: { text: string };
  renamed: { text: string };
  strict: { text: string };
};

export abstract class DeployedBase extends TimerObject<Kinds> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS effects (kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT, at INTEGER NOT NULL, due INTEGER NOT NULL, attempt INTEGER NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS alarms (at INTEGER NOT NULL)",
    );
  }

  /** The handlers of this deployment. */
  protected abstract deployed(): Partial<Handlers<Kinds>>;

  protected handlers(): Handlers<Kinds> {
    // A deployment has some of the kinds.
    return this.deployed() as Handlers<Kinds>;
  }

  protected effect(timer: { kind: string; name?: string; payload: unknown; dueAt: number; attempt: number }): void {
    const { text } = (timer.payload ?? {}) as { text?: string };
    this.#sql.exec(
      "INSERT INTO effects VALUES (?, ?, ?, ?, ?, ?)",
      timer.kind,
      timer.name ?? "",
      text ?? null,
      Date.now(),
      timer.dueAt,
      timer.attempt,
    );
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    this.#sql.exec("INSERT INTO alarms VALUES (?)", Date.now());
    await super.alarm(info);
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      const [first, second] = args as [never, never];
      switch (op) {
        case "schedule":
          await Promise.all((args as [string, object][]).map(([kind, timer]) => this.schedule(kind as never, timer as never)));
          return null;
        case "list":
          return this.list(first, second);
        case "dead":
          return this.deadLetters.list(first);
        case "counts":
          return this.timers.counts();
        case "effects":
          return this.#sql.exec("SELECT * FROM effects ORDER BY rowid").toArray();
        case "alarms":
          return this.#sql.exec("SELECT COUNT(*) AS n FROM alarms").one().n;
        case "alarm":
          return this.ctx.storage.getAlarm();
        case "rowsOf":
          return this.#rowsOf(first);
        case "corrupt":
          return this.#corrupt(first);
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }

  /** The number that the name of a kind was allotted. */
  #number(kind: string): number {
    const named = this.#sql.exec<{ value: ArrayBuffer }>(
      "SELECT value FROM dueline_kv WHERE key = ?",
      new Uint8Array([0x6b, 0, ...new TextEncoder().encode(kind)]),
    );
    return new Uint8Array(named.one().value)[0] ?? 0;
  }

  #rowsOf(kind: string): unknown {
    const number = this.#number(kind);
    return timerRows(this.#sql).filter((row) => row.kind === number);
  }

  /** Breaks the last byte of the payload of a kind's first timer, which is no JSON then. */
  #corrupt(kind: string): null {
    const number = this.#number(kind);
    const [row] = timerRows(this.#sql).filter((found) => found.kind === number);
    const key = Uint8Array.from(row?.key.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
    this.#sql.exec(
      "UPDATE dueline_kv SET value = CAST(substr(value, 1, length(value) - 1) || x'ff' AS BLOB) WHERE key = ?",
      key,
    );
    return null;
  }
}
