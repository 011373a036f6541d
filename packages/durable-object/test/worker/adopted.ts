// An object with an alarm of its own, before and behind the adoption of the timers.
import { Timers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";

/** Before: an object as people write them by hand, and behind: the same one with timers, over one storage. */
export class Adopted extends DurableObject {
  #timers: Timers<{ tick: { text: string } }> | undefined;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as Cloudflare.Env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS log (text TEXT); CREATE TABLE IF NOT EXISTS version (n INTEGER)");
    if (ctx.storage.sql.exec("SELECT n FROM version").toArray().length > 0) {
      this.#timers = this.#made();
    }
  }

  #made(): Timers<{ tick: { text: string } }> {
    return new Timers<{ tick: { text: string } }>(this.ctx, {
      handlers: { tick: (timer) => () => this.#log(timer.payload.text) },
      ownAlarm: () => this.#ownAlarm(),
    });
  }

  #log(text: string): void {
    this.ctx.storage.sql.exec("INSERT INTO log (text) VALUES (?)", text);
  }

  #ownAlarm(): void {
    this.#log("own alarm");
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    if (this.#timers === undefined) {
      this.#ownAlarm();
    } else {
      await this.#timers.alarm(info);
    }
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      switch (op) {
        case "setOldAlarm":
          return this.ctx.storage.setAlarm(Date.now() + (args[0] as number));
        case "upgrade":
          this.ctx.storage.sql.exec("INSERT INTO version (n) VALUES (2)");
          this.#timers = this.#made();
          return null;
        case "setAlarm":
          return this.#timers?.setAlarm(Date.now() + (args[0] as number));
        case "getAlarm":
          return this.#timers?.getAlarm();
        case "deleteAlarm":
          return this.#timers?.deleteAlarm();
        case "tick":
          return this.#timers?.schedule("tick", { after: args[0] as number, payload: { text: "tick" } });
        case "log":
          return this.ctx.storage.sql.exec("SELECT text FROM log").toArray().map(({ text }) => text);
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }
}
