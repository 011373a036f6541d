import { Timers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";

type Kinds = { close: { reason: string } };

export class Room extends DurableObject {
  readonly #timers = new Timers<Kinds>(this.ctx, {
    handlers: () => ({ close: (timer) => () => this.#close(timer.payload.reason) }),
  });

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.#timers.alarm(info);
  }

  #close(reason: string): void {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS closed (reason TEXT)");
    this.ctx.storage.sql.exec("INSERT INTO closed VALUES (?)", reason);
  }
}
