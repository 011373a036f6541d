// Goal: handlers under a virtual clock meet what they would meet on the platform: back-off, deadlines, calls,
// alarms that are tried again, transactions; and a run can be had again. Method: small objects of each kind.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { dead, detached, reschedule, TimerObject, Timers, type Handlers, type KindCounts } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";

type Kinds = { work: { fails: number }; slow: { ms: number }; tick: undefined; give: undefined };

const runs: { kind: string; at: number; attempt: number }[] = [];

class Worker extends TimerObject<Kinds> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS done (kind TEXT NOT NULL, at INTEGER NOT NULL)");
  }

  protected override handlers(): Handlers<Kinds> {
    const note = (timer: { kind: string; now: number; attempt: number }): void =>
      void runs.push({ kind: timer.kind, at: timer.now, attempt: timer.attempt });
    const effects = (kind: string) => () => void this.#sql.exec("INSERT INTO done VALUES (?, ?)", kind, Date.now());
    return {
      work: (timer) => {
        note(timer);
        if (timer.attempt <= timer.payload.fails) {
          throw new Error("not yet");
        }
        return effects("work");
      },
      slow: detached({
        call: async (timer) => {
          note(timer);
          await new Promise((resolve) => setTimeout(resolve, timer.payload.ms));
          return Date.now();
        },
        settle: (timer, at) => {
          assert.equal(at, timer.dueAt + timer.payload.ms);
          return effects("slow");
        },
        deadline: 10_000,
      }),
      tick: (timer) => {
        note(timer);
        return reschedule({ dueAt: timer.dueAt + 60_000 }, effects("tick"));
      },
      give: () => dead("no more"),
    };
  }

  counted(): Promise<KindCounts[]> {
    return this.timers.counts();
  }

  async given(): Promise<string[]> {
    return (await this.deadLetters.list()).items.map(({ lastError }) => lastError ?? "");
  }
}

let clock: TestClock;
let object: TestObject<Worker>;

async function begin(seed?: number): Promise<void> {
  runs.length = 0;
  clock = TestClock.install(seed === undefined ? {} : { seed });
  object = await TestObject.open(clock, Worker);
}

const done = (): unknown[] => object.sql("SELECT kind FROM done").map(({ kind }) => kind);

describe("under a virtual clock", () => {
  beforeEach(() => begin());
  afterEach(() => clock.uninstall());

  it("a timer fires at its time to the millisecond, and the clock stands at it", async () => {
    await object.instance.schedule("work", { after: 90_000, payload: { fails: 0 } });
    const due = clock.now + 90_000;
    await clock.advance(89_999);
    assert.deepEqual(done(), []);
    await clock.advance(10_000);
    assert.deepEqual(object.sql("SELECT at FROM done"), [{ at: due }]);
    assert.equal(clock.now, due + 9_999);
  });

  it("a failed handler runs again behind its back-off, the same in every run of a seed", async () => {
    const one = async (): Promise<number[]> => {
      await object.instance.schedule("work", { after: 0, payload: { fails: 3 } });
      const begun = clock.now;
      await clock.advance(120_000);
      assert.deepEqual(done(), ["work"]);
      assert.deepEqual(runs.map(({ attempt }) => attempt), [1, 2, 3, 4]);
      return runs.map(({ at }) => at - begun);
    };
    const again = async (seed: number): Promise<number[]> => {
      clock.uninstall();
      await begin(seed);
      return one();
    };
    const first = await again(7);
    const waits = first.slice(1).map((at, index) => at - (first[index] ?? 0));
    waits.forEach((ms, index) => assert.ok(ms >= 5_000 * 2 ** index && ms <= 6_001 * 2 ** index, `waits ${waits}`));
    assert.deepEqual(await again(7), first);
    assert.notDeepEqual(await again(8), first);
  });

  it("a call takes virtual time, and one that is too slow is cut at its deadline", async () => {
    await object.instance.schedule("slow", { after: 1_000, payload: { ms: 2_000 } });
    await clock.advance(2_999);
    assert.deepEqual(done(), []);
    await clock.advance(1);
    assert.deepEqual(done(), ["slow"]);

    await object.instance.schedule("slow", { name: "late", after: 1_000, payload: { ms: 60_000 } });
    await clock.advance(11_000);
    const late = await object.instance.get("slow", "late");
    assert.equal(late?.state, "retrying");
    assert.match(late?.lastError ?? "", /deadline/);
  });

  it("a day of a timer that comes again is over at once, without drift", async () => {
    await object.instance.schedule("tick", { name: "minute", after: 60_000 });
    const begun = clock.now;
    await clock.advance(86_400_000);
    assert.equal(runs.length, 1_440);
    assert.ok(runs.every(({ at }, index) => at === begun + (index + 1) * 60_000));
  });

  it("is counted by what its timers are doing", async () => {
    await object.instance.schedule("work", { after: 1_000, payload: { fails: 1 } });
    await object.instance.schedule("work", { after: 60_000, payload: { fails: 0 } });
    await object.instance.schedule("slow", { after: 1_000, payload: { ms: 5_000 } });
    const shown = async (): Promise<unknown[]> =>
      (await object.instance.counted()).map(({ kind, timers, retrying, claimed }) => [kind, timers, retrying, claimed]);
    assert.deepEqual(await shown(), [["work", 2, 0, 0], ["slow", 1, 0, 0]]);
    await clock.advance(2_000);
    assert.deepEqual(await shown(), [["work", 2, 1, 0], ["slow", 1, 0, 1]]);
    await clock.advance(10_000);
    assert.deepEqual(await shown(), [["work", 1, 0, 0]]);
  });

  it("a timer is given up, and the object is built anew over what it had", async () => {
    await object.instance.schedule("give", { after: 1_000 });
    await object.restart();
    await clock.advance(1_000);
    assert.deepEqual(await object.instance.given(), ["no more"]);
    assert.equal(object.alarmAt, null);
  });
});

describe("the platform under a virtual clock", () => {
  afterEach(() => clock.uninstall());

  class Own extends DurableObject {
    tries = 0;
    override async alarm(info?: AlarmInvocationInfo): Promise<void> {
      this.tries += 1;
      assert.equal(info?.retryCount, this.tries - 1);
      if (this.tries < 3) {
        throw new Error("not yet");
      }
    }
    async set(at: number): Promise<void> {
      await this.ctx.storage.setAlarm(at);
    }
    async keep(): Promise<unknown> {
      await this.ctx.storage.put("key", { when: new Date(5) });
      assert.throws(() =>
        this.ctx.storage.transactionSync(() => {
          this.ctx.storage.sql.exec("CREATE TABLE gone (n)");
          throw new Error("back");
        }),
      );
      assert.throws(() => this.ctx.storage.sql.exec("BEGIN"), /not allowed/);
      assert.deepEqual(this.ctx.storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'gone'").toArray(), []);
      return this.ctx.storage.get("key");
    }
    missing(): unknown {
      return this.ctx.storage.getCurrentBookmark();
    }
  }

  it("tries an alarm again that throws", async () => {
    clock = TestClock.install();
    const own = await TestObject.open(clock, Own);
    const begun = clock.now;
    await own.instance.set(begun + 1_000);
    await clock.advance(60_000);
    assert.deepEqual(own.alarms.map(({ at }) => at - begun), [1_000, 3_000, 7_000]);
    assert.match(String(own.alarms[0]?.error), /not yet/);
  });

  it("keeps values, rolls back, and says what it does not offer", async () => {
    clock = TestClock.install();
    const own = await TestObject.open(clock, Own);
    assert.deepEqual(await own.instance.keep(), { when: new Date(5) });
    assert.throws(() => own.instance.missing(), /ctx\.storage\.getCurrentBookmark is not offered/);
  });

  it("makes an old object's own alarm a timer", async () => {
    clock = TestClock.install();
    let own = 0;
    class Adopting extends DurableObject {
      readonly timers = new Timers<Record<string, never>>(this.ctx, { handlers: {}, ownAlarm: () => void (own += 1) });
      override async alarm(info?: AlarmInvocationInfo): Promise<void> {
        await this.timers.alarm(info);
      }
    }
    const object = await TestObject.open(clock, Adopting);
    await object.instance.timers.setAlarm(clock.now + 500);
    await clock.advance(499);
    assert.equal(own, 0);
    await clock.advance(1);
    assert.equal(own, 1);
  });
});
