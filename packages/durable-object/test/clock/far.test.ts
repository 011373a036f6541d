// Goal: a timer that is due in 60 days, in 10 years, or in the last millisecond of 9999 fires at its due and not
// before, whatever restarts and alarms come in between; and so does a timeout that is longer than 2^31 ms, where
// those of JavaScript end at once. Method: a virtual clock, with a look at every alarm on the way.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { detached, TimerObject, type Handlers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;
/** The longest timeout that JavaScript knows: 24.8 days. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;
/** 2100-01-01T00:00:00Z: no alarm is set behind it before it has come. */
const ALARM_MS_MAX = 4_102_444_800_000;
/** 9999-12-31T23:59:59.999Z. */
const DUE_MS_MAX = 253_402_300_799_999;

type Kinds = { note: undefined; fail: undefined; slow: { ms: number } };

class Far extends TimerObject<Kinds> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS done (kind TEXT NOT NULL, at INTEGER NOT NULL)");
  }

  protected override handlers(): Handlers<Kinds> {
    const effects = (kind: string) => () => {
      this.ctx.storage.sql.exec("INSERT INTO done VALUES (?, ?)", kind, Date.now());
    };
    return {
      note: () => effects("note"),
      fail: {
        run: (timer) => {
          if (timer.attempt === 1) {
            throw new Error("not yet");
          }
          return effects("fail");
        },
        retry: { initial: 60 * DAY_MS, max: 60 * DAY_MS, jitter: 0 },
      },
      slow: detached({
        call: (timer) => new Promise((resolve) => setTimeout(resolve, timer.payload.ms)),
        settle: () => effects("slow"),
        deadline: 40 * DAY_MS,
      }),
    };
  }

  /** An alarm that nobody needs, as if set by somebody else. */
  async wakeAt(at: number): Promise<void> {
    await this.ctx.storage.setAlarm(at);
  }
}

let clock: TestClock;
let object: TestObject<Far>;

const done = (): unknown[] => object.sql("SELECT kind, at FROM done");
const alarmTimes = (): number[] => object.alarms.map(({ at }) => at);

/** Lets time pass in steps, each with a restart behind it, while nothing fires. */
async function advanceInSteps(until: number, steps: number): Promise<void> {
  const step = Math.floor((until - clock.now) / steps);
  for (let index = 0; index < steps; index += 1) {
    await clock.advance(step);
    assert.deepEqual(done(), [], `${until - clock.now} ms early`);
    assert.notEqual(object.alarmAt, null);
    await object.restart();
  }
}

describe("a due that is far ahead", () => {
  beforeEach(async () => {
    clock = TestClock.install({ now: "2026-10-01T00:00:00Z" });
    object = await TestObject.open(clock, Far);
  });
  afterEach(() => clock.uninstall());

  for (const [what, ahead] of [["60 days", 60 * DAY_MS], ["10 years", 10 * YEAR_MS], ["a timeout and 1 ms", TIMEOUT_MS_MAX + 1]] as const) {
    it(`of ${what} is met to the millisecond, over restarts, by the one alarm that it needs`, async () => {
      const due = clock.now + ahead;
      await object.instance.schedule("note", { name: "far", after: ahead });
      assert.equal(object.alarmAt, due);
      await advanceInSteps(due, 7);
      await clock.advanceTo(due - 1);
      assert.deepEqual([done(), object.alarms.length, object.alarmAt], [[], 0, due]);
      await clock.advance(1);
      assert.deepEqual(done(), [{ kind: "note", at: due }]);
      assert.deepEqual([alarmTimes(), object.alarmAt], [[due], null]);
    });
  }

  it("is met although alarms of others come before it, which fire nothing of it and set it again", async () => {
    const due = clock.now + 60 * DAY_MS;
    await object.instance.schedule("note", { name: "far", dueAt: due });
    const early = [1, 24, 25, 59].map((days) => clock.now + days * DAY_MS);
    for (const at of early) {
      await object.instance.wakeAt(at);
      await clock.advanceTo(at);
      assert.deepEqual([done(), object.alarmAt], [[], due]);
      await object.restart();
    }
    await clock.advanceTo(due + DAY_MS);
    assert.deepEqual(done(), [{ kind: "note", at: due }]);
    assert.deepEqual(alarmTimes(), [...early, due]);
  });

  it("of the last millisecond of 9999 has its alarm in 2100, then one a year, and then its own", async () => {
    await object.instance.schedule("note", { name: "last", dueAt: DUE_MS_MAX });
    await clock.advanceTo(ALARM_MS_MAX - 1);
    assert.deepEqual([object.alarms.length, object.alarmAt], [0, ALARM_MS_MAX]);
    await clock.advance(1);
    await object.restart();
    assert.equal(object.alarmAt, ALARM_MS_MAX + YEAR_MS);
    await clock.advanceTo(DUE_MS_MAX - 1);
    assert.deepEqual([done(), object.alarmAt], [[], DUE_MS_MAX]);
    const years = Math.ceil((DUE_MS_MAX - ALARM_MS_MAX) / YEAR_MS);
    assert.deepEqual(alarmTimes(), Array.from({ length: years }, (_, year) => ALARM_MS_MAX + year * YEAR_MS));
    await clock.advance(1);
    assert.deepEqual([done(), object.alarmAt], [[{ kind: "note", at: DUE_MS_MAX }], null]);
  });

  it("of a retry is met as well", async () => {
    const first = clock.now + 60 * DAY_MS;
    await object.instance.schedule("fail", { dueAt: first });
    await clock.advanceTo(first);
    assert.equal(object.alarmAt, first + 60 * DAY_MS);
    await object.restart();
    await clock.advance(60 * DAY_MS - 1);
    assert.deepEqual(done(), []);
    await clock.advance(1);
    assert.deepEqual(done(), [{ kind: "fail", at: first + 60 * DAY_MS }]);
  });
});

describe("a timeout of more than 2^31 ms", () => {
  beforeEach(async () => {
    clock = TestClock.install();
    object = await TestObject.open(clock, Far);
  });
  afterEach(() => clock.uninstall());

  it("takes its time under the virtual clock, as on the platform", async () => {
    let isOver = false;
    setTimeout(() => (isOver = true), TIMEOUT_MS_MAX + 1);
    await clock.advance(TIMEOUT_MS_MAX);
    assert.equal(isOver, false);
    await clock.advance(1);
    assert.equal(isOver, true);
  });

  it("does not cut a call whose deadline is that far ahead, and one that passes it is cut there", async () => {
    const begun = clock.now;
    await object.instance.schedule("slow", { after: 0, payload: { ms: 1_000 } });
    await object.instance.schedule("slow", { name: "late", after: 0, payload: { ms: 50 * DAY_MS } });
    await clock.advance(2_000);
    assert.equal(done().length, 1);
    assert.equal((await object.instance.get("slow", "late"))?.state, "claimed");
    await clock.advanceTo(begun + 40 * DAY_MS - 1);
    assert.equal((await object.instance.get("slow", "late"))?.state, "claimed");
    await clock.advance(1_000);
    const late = await object.instance.get("slow", "late");
    assert.deepEqual([done().length, late?.state, late?.attempt], [1, "retrying", 1]);
    assert.match(late?.lastError ?? "", /deadline of 3456000000 ms/);
  });
});
