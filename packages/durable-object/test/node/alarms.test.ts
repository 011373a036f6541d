// Goal: while timers wait, the object's one alarm is set, and early enough, whatever happens to it.
// Method: an object in a real workerd whose storage refuses on demand and whose alarm is deleted or moved
// behind the back of the timers. Rows and alarm are read past the package, behind every alarm and request.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Workerd, until, type ObjectClient } from "./workerd.js";

interface Standing {
  readonly alarm: number | null;
  readonly earliest: number | null;
  readonly now: number;
  readonly isSound: boolean;
}

interface Alarm {
  readonly at: number;
  readonly retry: number;
  readonly thrown: string | null;
  readonly report: { readonly fired: number; readonly worstLatenessMs: number } | null;
  readonly standing: Standing | null;
}

interface Effect {
  readonly name: string;
  readonly text: string;
  readonly at: number;
  readonly due: number;
}

interface View {
  readonly state: string;
  readonly attempt: number;
  readonly lastError: string;
  readonly dueAt: number;
}

const HOUR_MS = 3_600_000;
/** Workerd tries an alarm that throws six times more, behind 2, 4, 8, 16, 32 and 64 s and a little. */
const TRIES = 7;
const GIVEN_UP_MS = 200_000;

const OPTIONS = { entry: "alarms.js", classes: ["Alarmed"] };
let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start(OPTIONS);
});
after(() => workerd.stop());

const fresh = (name: string): ObjectClient => workerd.object("Alarmed", name);
const standing = (object: ObjectClient): Promise<Standing> => object.call<Standing>("standing");
const alarms = (object: ObjectClient): Promise<Alarm[]> => object.call<Alarm[]>("alarms");
const note = (object: ObjectClient, name: string, dueAt: number): Promise<unknown> =>
  object.call("schedule", "note", { name, dueAt, payload: { text: name } });
const effects = (object: ObjectClient, count: number): Promise<Effect[]> =>
  until(() => object.call<Effect[]>("effects"), (found) => found.length >= count);

/** The alarm behind a call: sound at the latest when what the call left running has ended. */
async function soundly(object: ObjectClient): Promise<Standing> {
  return until(() => standing(object), ({ isSound }) => isSound, 5_000);
}

/** The invariant behind each alarm that was served so far. */
async function checkAlarms(object: ObjectClient): Promise<Alarm[]> {
  const all = await alarms(object);
  for (const served of all) {
    if (served.thrown === null) {
      assert.ok(served.standing?.isSound, `behind an alarm: ${JSON.stringify(served)}`);
    }
  }
  return all;
}

async function restart(): Promise<void> {
  await workerd.kill();
  await workerd.start();
}

describe("a handler that throws 20 times", () => {
  it("is caught, stored, backed off and re-armed; the platform retries nothing", async () => {
    const object = fresh("throws");
    await note(object, "bystander", Date.now() + HOUR_MS);
    await object.call("schedule", "fail", { name: "poor", after: 0, payload: { times: 20 } });
    const stored = await until(
      () => object.call<View | null>("get", "fail", "poor"),
      (view) => view === null || view.attempt >= 3,
    );
    assert.equal(stored?.state, "retrying");
    assert.equal(stored.lastError, `failed run ${stored.attempt}`);
    const [effect] = await effects(object, 1);
    assert.equal(effect?.text, "at last");
    const runs = await object.call<{ attempt: number; at: number }[]>("runs");
    assert.deepEqual(runs.map(({ attempt }) => attempt), Array.from({ length: 21 }, (_, index) => index + 1));
    for (const [index, { at }] of runs.entries()) {
      const earlier = runs[index - 1];
      if (earlier !== undefined) {
        const wanted = earlier.attempt === 1 ? 20 : 40;
        assert.ok(at - earlier.at >= wanted, `attempt ${index + 1} came ${at - earlier.at} ms behind the one before`);
      }
    }
    const served = await checkAlarms(object);
    assert.ok(served.length >= 21, `${served.length} alarms`);
    assert.deepEqual(served.filter(({ retry, thrown }) => retry !== 0 || thrown !== null), []);
    const behind = await soundly(object);
    assert.notEqual(behind.alarm, null);
    assert.equal(behind.alarm, behind.earliest);
  });
});

describe("an alarm that is deleted while timers wait", () => {
  it("is set again by the next call", async () => {
    const object = fresh("deleted-call");
    const dueAt = Date.now() + HOUR_MS;
    await note(object, "one", dueAt);
    await object.call("deleteAlarm");
    assert.equal((await standing(object)).alarm, null);
    await object.call("get", "note", "one");
    assert.equal((await soundly(object)).alarm, dueAt);
  });

  it("is set again by the next construction", async () => {
    const object = fresh("deleted-construction");
    const dueAt = Date.now() + HOUR_MS;
    await note(object, "one", dueAt);
    await object.call("deleteAlarm");
    await restart();
    const { alarm, isSound } = await standing(object);
    assert.deepEqual([alarm, isSound], [dueAt, true]);
  });

  it("is set again when a timer is scheduled, for what is earliest", async () => {
    const object = fresh("deleted-schedule");
    const dueAt = Date.now() + HOUR_MS;
    await note(object, "one", dueAt);
    await object.call("deleteAlarm");
    await note(object, "two", dueAt + HOUR_MS);
    assert.equal((await soundly(object)).alarm, dueAt);
  });

  it("still fires what came due meanwhile, with its own lateness", async () => {
    const object = fresh("deleted-overdue");
    const dueAt = await object.call<number>("scheduleAt", "one", null);
    await until(() => standing(object), ({ now }) => now > dueAt);
    assert.deepEqual(await object.call("effects"), []);
    await object.call("get", "note", "other");
    const [effect] = await effects(object, 1);
    assert.equal(effect?.due, dueAt);
    await checkAlarms(object);
  });
});

describe("an alarm that the application sets itself", () => {
  it("later than the earliest timer, is set back to it by the next call", async () => {
    const object = fresh("later-call");
    const dueAt = Date.now() + HOUR_MS;
    await note(object, "one", dueAt);
    await object.call("setAlarm", dueAt + HOUR_MS);
    assert.equal((await standing(object)).isSound, false);
    await object.call("get", "note", "one");
    assert.equal((await soundly(object)).alarm, dueAt);
  });

  it("later than the earliest timer, is set back to it by the next construction", async () => {
    const object = fresh("later-construction");
    const dueAt = Date.now() + HOUR_MS;
    await note(object, "one", dueAt);
    await object.call("setAlarm", dueAt + HOUR_MS);
    await restart();
    assert.equal((await standing(object)).alarm, dueAt);
  });

  it("later than a timer that comes due, delays it to the next call and no further", async () => {
    const object = fresh("later-overdue");
    const dueAt = await object.call<number>("scheduleAt", "one", Date.now() + HOUR_MS);
    await until(() => standing(object), ({ now }) => now > dueAt);
    await object.call("get", "note", "one");
    assert.equal((await effects(object, 1))[0]?.due, dueAt);
    await checkAlarms(object);
  });

  it("earlier than the earliest timer, comes for nothing and gives way to it", async () => {
    const object = fresh("earlier");
    const dueAt = Date.now() + HOUR_MS;
    await note(object, "one", dueAt);
    await object.call("setAlarm", Date.now() + 50);
    await until(() => alarms(object), (served) => served.length > 0);
    const served = await checkAlarms(object);
    assert.deepEqual(served.map(({ report }) => report?.fired), [0]);
    assert.deepEqual(await object.call("effects"), []);
    assert.equal((await soundly(object)).alarm, dueAt);
  });
});

describe("a storage that refuses until the platform gives the alarm up", { concurrency: true }, () => {
  /** Refuses from before the due on, until the last try has been thrown; then the storage heals. */
  async function givenUp(object: ObjectClient, fault: "reads" | "alarm"): Promise<void> {
    await note(object, "one", Date.now() + 4_000);
    // With another timer behind it there is always an alarm to be set.
    await note(object, "two", Date.now() + HOUR_MS);
    await object.call("fault", fault);
    const served = await until(() => alarms(object), (tries) => tries.length >= TRIES, GIVEN_UP_MS, 500);
    assert.deepEqual(served.map(({ retry }) => retry), [0, 1, 2, 3, 4, 5, 6]);
    assert.deepEqual(served.filter(({ thrown }) => thrown === null), []);
    await object.call("fault", "none");
    assert.equal((await standing(object)).isSound, false);
  }

  it("has its alarm set again by the next call: the heads could not be read", async () => {
    const object = fresh("refused-reads");
    await givenUp(object, "reads");
    await object.call("get", "note", "one");
    await effects(object, 1);
    await soundly(object);
  });

  it("has its alarm set again by the next call: the alarm could not be written", async () => {
    const object = fresh("refused-alarm");
    await givenUp(object, "alarm");
    await object.call("get", "note", "two");
    const { alarm, earliest } = await soundly(object);
    assert.equal(alarm, earliest);
  });

  it("has its alarm set again by the next construction", async (t) => {
    const own = await Workerd.start(OPTIONS);
    t.after(() => own.stop());
    const object = own.object("Alarmed", "refused");
    await givenUp(object, "reads");
    await own.kill();
    await own.start();
    // This request asks nothing of the timers.
    await effects(object, 1);
    await soundly(object);
  });
});
