// The same job with the package.
import { Timers, type Settings } from "@dueline/durable-object";
import { Side, payload, type Payload, type Wanted } from "./side.js";

type Kinds = { note: Payload };

export class WithDueline extends Side {
  readonly #timers: Timers<Kinds>;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#timers = new Timers<Kinds>(ctx, {
      handlers: () => ({
        note: {
          run: (timer) => () => this.effect(timer.payload.number, timer.dueAt),
          group: this.group(),
        },
      }),
      ...this.settings(),
    });
  }

  /** The batch of the loop by hand. */
  protected settings(): Settings {
    return { fired: 128, firedPerKind: 128 };
  }

  /** Timers that commit together. */
  protected group(): number {
    return 1;
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.#timers.alarm(info);
  }

  protected override anonymous(number: number, dueAt: number): Promise<unknown> {
    return this.#timers.schedule("note", { dueAt, payload: payload(number) });
  }

  protected override all(timers: readonly Wanted[]): Promise<unknown> {
    return this.#timers.scheduleMany(timers.map(({ number, dueAt }) => ({ kind: "note", dueAt, payload: payload(number) })));
  }

  protected override named(name: string, number: number, dueAt: number): Promise<unknown> {
    return this.#timers.schedule("note", { name, dueAt, payload: payload(number) });
  }

  protected override async hold(): Promise<void> {
    await this.#timers.pause("note");
  }

  protected override async release(): Promise<void> {
    await this.#timers.resume("note");
  }

  protected override left(): number {
    return this.sql
      .exec<{ n: number }>("SELECT COUNT(*) AS n FROM dueline_kv WHERE key >= x'7700' AND key < x'7701'")
      .one().n;
  }
}

/** As it is without a setting. */
export class WithDefaults extends WithDueline {
  protected override settings(): Settings {
    return {};
  }
}

/** With timers that commit in groups, as a kind may ask for. */
export class WithGroups extends WithDueline {
  protected override group(): number {
    return 64;
  }
}
