// What both sides of the comparison do, and the requests that ask for it.
import { DurableObject } from "cloudflare:workers";

/** What a timer carries. */
export interface Payload {
  readonly number: number;
  readonly note: string;
}

/** A hundred bytes, as JSON. */
export function payload(number: number): Payload {
  return { number, note: "n".repeat(75) };
}

/** One of many timers that are scheduled together. */
export interface Wanted {
  readonly number: number;
  readonly dueAt: number;
}

/** When each timer fired. */
export interface Fired {
  readonly number: number;
  readonly dueAt: number;
  readonly at: number;
}

/** The object of one side. */
export abstract class Side extends DurableObject {
  protected readonly sql = this.ctx.storage.sql;
  #releasedAt = 0;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    this.sql.exec(
      "CREATE TABLE IF NOT EXISTS effects (number INTEGER PRIMARY KEY, due_at INTEGER NOT NULL, at INTEGER NOT NULL)",
    );
  }

  /** Schedules an anonymous timer. */
  protected abstract anonymous(number: number, dueAt: number): Promise<unknown>;
  /** Schedules anonymous timers in one commit: all of them, or none. */
  protected abstract all(timers: readonly Wanted[]): Promise<unknown>;
  /** Schedules a timer under a name, in the place of the one that has it. */
  protected abstract named(name: string, number: number, dueAt: number): Promise<unknown>;
  /** Fires nothing until `release`. */
  protected abstract hold(): Promise<void>;
  protected abstract release(): Promise<void>;
  protected abstract left(): number;

  /** The effects of a timer; a number that came twice would throw. */
  protected effect(number: number, dueAt: number): void {
    this.sql.exec("INSERT INTO effects VALUES (?, ?, ?)", number, dueAt, Date.now());
  }

  override async fetch(request: Request): Promise<Response> {
    const { op, args } = await request.json<{ op: string; args: number[] }>();
    const [first = 0, second = 0, third = 0] = args;
    return Response.json({ value: (await this.#op(op, first, second, third)) ?? null });
  }

  async #op(op: string, first: number, second: number, third: number): Promise<unknown> {
    switch (op) {
      case "single":
        return this.#single(first, second);
      case "many":
        return this.#many(first, second, third);
      case "whole":
        return this.#whole(first, second, third);
      case "spread":
        return this.#spread(first, second);
      case "one":
        return this.named(`name ${first}`, first, second);
      case "hold":
        return this.hold();
      case "release":
        this.#releasedAt = Date.now();
        return this.release();
      case "fired":
        return this.sql.exec("SELECT COUNT(*) AS n FROM effects").one().n;
      case "left":
        return this.left();
      case "took":
        return Number(this.sql.exec("SELECT MAX(at) AS at FROM effects").one().at) - this.#releasedAt;
      case "late":
        return this.sql.exec("SELECT at - due_at AS late FROM effects").toArray().map(({ late }) => late);
      default:
        throw new Error(`no op ${op}`);
    }
  }

  /** One after another, each durable before the next. In milliseconds. */
  async #single(count: number, isNamed: number): Promise<number> {
    const begun = Date.now();
    const dueAt = begun + 86_400_000;
    for (let number = 0; number < count; number += 1) {
      await (isNamed === 1 ? this.named(`name ${number}`, number, dueAt) : this.anonymous(number, dueAt));
      await this.ctx.storage.sync();
    }
    return Date.now() - begun;
  }

  /** All at once, durable together. In milliseconds. */
  async #many(from: number, count: number, dueAt: number): Promise<number> {
    const begun = Date.now();
    const all: Promise<unknown>[] = [];
    for (let number = from; number < from + count; number += 1) {
      all.push(this.anonymous(number, dueAt + ((number * 7_919) % 60_000)));
    }
    await Promise.all(all);
    await this.ctx.storage.sync();
    return Date.now() - begun;
  }

  /** So many in each call, each durable before the next. In milliseconds. */
  async #whole(count: number, each: number, dueAt: number): Promise<number> {
    const begun = Date.now();
    for (let from = 0; from < count; from += each) {
      const length = Math.min(each, count - from);
      await this.all(Array.from({ length }, (_, index) => ({ number: from + index, dueAt: dueAt + (((from + index) * 7_919) % 60_000) })));
      await this.ctx.storage.sync();
    }
    return Date.now() - begun;
  }

  /** Timers that come due one after another. */
  async #spread(count: number, everyMs: number): Promise<void> {
    const begin = Date.now() + 1_000;
    const all: Promise<unknown>[] = [];
    for (let number = 0; number < count; number += 1) {
      all.push(this.anonymous(number, begin + number * everyMs));
    }
    await Promise.all(all);
  }
}
