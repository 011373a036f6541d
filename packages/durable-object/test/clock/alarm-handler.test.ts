// Goal: an object whose class cannot be woken by its alarm says so before a timer is stored, and one whose `alarm()`
// forgets the timers is told of. Method: classes without `alarm()`, or with one that does nothing, under a virtual clock.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { TimerObject, Timers, type Handlers, type LogEvent } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";
import { ErrorsTold } from "./errors-told.js";

type Kinds = { tick: undefined };

let ran = 0;
const handlers: Handlers<Kinds> = { tick: () => void (ran += 1) };

class WithoutAlarm extends DurableObject {
  readonly timers = new Timers<Kinds>(this.ctx, { handlers });
}

class WithAlarm extends DurableObject {
  readonly timers = new Timers<Kinds>(this.ctx, { handlers });
  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }
}

let events: LogEvent[] = [];

abstract class Base extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return handlers;
  }
}
abstract class Logged extends Base {
  protected override settings() {
    return { log: (event: LogEvent) => void events.push(event) };
  }
}

let clock: TestClock;
let errors: ErrorsTold;
beforeEach(() => {
  [ran, events] = [0, []];
  errors = new ErrorsTold();
  clock = TestClock.install();
});
afterEach(() => {
  clock.uninstall();
  errors.end();
});

describe("a class that composes its timers", () => {
  it("is refused without an `alarm()`, and nothing is written", async () => {
    // The test object has no database to look into where it was not opened: the object's own is looked at instead.
    let tables: unknown[] = [];
    class Watched extends WithoutAlarm {
      constructor(ctx: DurableObjectState, env: unknown) {
        super(ctx, env as Cloudflare.Env);
        this.timers.schedule("tick", { after: 1 }).catch(() => {
          tables = ctx.storage.sql.exec("SELECT name FROM sqlite_master").toArray();
        });
      }
    }
    await assert.rejects(TestObject.open(clock, Watched), (thrown) => {
      assert.equal((thrown as { code?: string }).code, "invalid");
      assert.match((thrown as Error).message, /no `alarm\(\)`.* Add: async alarm\(info\)/);
      return true;
    });
    await clock.advance(1);
    assert.deepEqual(tables, []);
    assert.deepEqual(errors.told, []);
  });

  it("is not asked again, and has no alarm but those of its timers", async () => {
    const object = await TestObject.open(clock, WithAlarm);
    assert.equal(object.alarmAt, null);
    await object.restart();
    await object.instance.timers.schedule("tick", { after: 5 });
    assert.equal(object.alarmAt, clock.now + 5);
    await clock.advance(10_000_000);
    assert.deepEqual([ran, object.alarms.length], [1, 1]);
  });

  it("that has lost its `alarm()` says that its timers wait for it", async () => {
    const object = await TestObject.open(clock, WithAlarm);
    const without = await object.restart(WithoutAlarm);
    await assert.rejects(without.instance.timers.schedule("tick", { after: 5 }), (thrown) => {
      assert.equal((thrown as { code?: string }).code, "unknown_outcome");
      assert.match((thrown as Error).message, /must have an alarm\(\) handler.*; what was written is there, and fires once/);
      return true;
    });
    await clock.advance(5);
    await without.restart(WithAlarm);
    await clock.advance(1);
    assert.equal(ran, 1);
  });

  it("has one `Timers`", async () => {
    class Twice extends WithAlarm {
      readonly more = new Timers<Kinds>(this.ctx, { handlers });
    }
    await assert.rejects(TestObject.open(clock, Twice), /^DuelineError: invalid: this object has its timers already/);
  });

  it("has none beside those of `TimerObject`", async () => {
    class Both extends Base {
      readonly more = new Timers<Kinds>(this.ctx, { handlers });
    }
    await assert.rejects(TestObject.open(clock, Both), /^DuelineError: invalid: this object has its timers already/);
  });
});

it("`Timers` of what is no `ctx` are refused", () => {
  for (const [ctx, words] of [
    [undefined, /is the object's `ctx`, not undefined/],
    [null, /not null/],
    [{ handlers }, /not an object with handlers/],
  ] as const) {
    assert.throws(() => new Timers<Kinds>(ctx as unknown as DurableObjectState, { handlers }), words);
  }
});

/** Takes the tables of the timers away, as `deleteAll()` does it. */
function takeTables(object: TestObject<WithAlarm>): void {
  for (const { name } of object.sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'dueline%'")) {
    object.sql(`DROP TABLE ${String(name)}`);
  }
}

describe("an object whose tables are gone", () => {
  it("has them made anew by whichever verbs come first", async () => {
    const object = await TestObject.open(clock, WithAlarm);
    const { timers } = object.instance;
    await timers.schedule("tick", { name: "a", after: 5 });
    const verbs = [
      () => timers.schedule("tick", { name: "b", after: 5 }),
      () => timers.get("tick", "a"),
      () => timers.cancel("tick", "a"),
      () => timers.list("tick"),
      () => timers.pause("tick"),
      () => timers.counts(),
      () => timers.deadLetters.list(),
      () => timers.scheduleMany([{ kind: "tick", name: "c", after: 5 }]),
    ];
    for (const verb of verbs) {
      takeTables(object);
      await verb();
      assert.equal(await timers.get("tick", "a"), undefined);
    }
    takeTables(object);
    await Promise.all(Array.from({ length: 20 }, (_, index) => timers.schedule("tick", { name: `of twenty ${index}`, after: 5 })));
    assert.equal((await timers.list("tick")).items.length, 20);
    await clock.advance(5);
    assert.equal(ran, 20);
    assert.equal(object.alarmAt, null);
  });

  it("has nothing to serve, and makes none of them for that", async () => {
    const object = await TestObject.open(clock, WithAlarm);
    await object.instance.timers.schedule("tick", { name: "a", after: 5 });
    takeTables(object);
    await clock.advance(60_000);
    assert.deepEqual(object.alarms.map(({ error }) => error), [undefined]);
    assert.equal(object.alarmAt, null);
    assert.deepEqual(object.sql("SELECT name FROM sqlite_master"), []);
  });

  it("is not asked for the alarm that it had before this package", async () => {
    let own = 0;
    class Adopting extends DurableObject {
      readonly timers = new Timers<Kinds>(this.ctx, { handlers, ownAlarm: () => void (own += 1) });
      override async alarm(info?: AlarmInvocationInfo): Promise<void> {
        await this.timers.alarm(info);
      }
    }
    const object = await TestObject.open(clock, Adopting);
    await object.instance.timers.schedule("tick", { name: "a", after: 5 });
    takeTables(object as unknown as TestObject<WithAlarm>);
    await object.instance.timers.schedule("tick", { name: "b", after: 5_000 });
    await clock.advance(5_000);
    assert.deepEqual([own, ran], [0, 1]);
  });
});

describe("an `alarm()` in the place of that of `TimerObject`", () => {
  it("is told of once if it does not serve the timers", async () => {
    class Forgets extends Logged {
      override async alarm(): Promise<void> {}
    }
    const object = await TestObject.open(clock, Forgets);
    for (let round = 0; round < 3; round += 1) {
      await object.instance.schedule("tick", { name: "a", after: 5 });
      await clock.advance(5);
    }
    assert.deepEqual([ran, object.alarms.length], [0, 3]);
    assert.deepEqual(events, [{ type: "unserved" }]);
  });

  it("is told to the console without a log", async () => {
    class Forgets extends Base {
      override async alarm(): Promise<void> {}
    }
    const object = await TestObject.open(clock, Forgets);
    await object.instance.schedule("tick", { after: 5 });
    await clock.advance(5);
    assert.match(String(errors.told), /^dueline: .*`super\.alarm\(info\)`$/);
  });

  it("is told of nothing if it serves them by either way, and its own work is done", async () => {
    let woken = 0;
    class Super extends Logged {
      override async alarm(info?: AlarmInvocationInfo): Promise<void> {
        woken += 1;
        await super.alarm(info);
      }
    }
    class Direct extends Logged {
      override async alarm(info?: AlarmInvocationInfo): Promise<void> {
        woken += 1;
        await this.timers.alarm(info);
      }
    }
    for (const made of [Super, Direct]) {
      const object = await TestObject.open<Super | Direct>(clock, made);
      await object.instance.schedule("tick", { after: 5 });
      await clock.advance(5);
    }
    assert.deepEqual([ran, woken], [2, 2]);
    assert.deepEqual(events.map(({ type }) => type), ["alarm", "alarm"]);
  });

  it("that throws is told of by the platform", async () => {
    class Throws extends Logged {
      override async alarm(): Promise<void> {
        throw new Error("no");
      }
    }
    const object = await TestObject.open(clock, Throws);
    await object.instance.schedule("tick", { after: 5 });
    await clock.advance(5);
    assert.match(String(object.alarms[0]?.error), /no/);
    assert.deepEqual(events, []);
  });
});
