// Goal: what is due very late never fires early, what lies behind the horizon is refused, and what was due
// long ago fires at once. Method: a real workerd; alarms are made to come early, and a timer that is due
// at once says when the early one has been served.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Answered, Workerd, until, type ObjectClient } from "./workerd.js";

interface Effect {
  readonly text: string;
  readonly at: number;
  readonly due: number;
}

interface Report {
  readonly fired: number;
  readonly worstLatenessMs: number;
  readonly nextAlarmAt?: number;
}

const DAY_MS = 86_400_000;
/** 9999-12-31T23:59:59.999Z. */
const DUE_MAX = 253_402_300_799_999;
/** 2100-01-01T00:00:00Z: the latest alarm that is ever set. */
const ALARM_MAX = 4_102_444_800_000;

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "horizon.js", classes: ["Horizon"] });
});
after(() => workerd.stop());

const fresh = (name: string): ObjectClient => workerd.object("Horizon", name);
const alarmOf = (object: ObjectClient): Promise<number | null> => object.call("alarm");
const reportsOf = (object: ObjectClient): Promise<Report[]> => object.call<Report[]>("reports");

/** Makes the alarm come now, and waits until it has been served. */
async function wakeEarly(object: ObjectClient): Promise<Report> {
  const before = (await reportsOf(object)).length;
  await object.call("setAlarm", Date.now());
  const reports = await until(() => reportsOf(object), (found) => found.length > before);
  const report = reports[before];
  assert.ok(report !== undefined);
  return report;
}

async function refused(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    (value) => assert.fail(`not refused: ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Answered, String(error));
  assert.equal(error.code, "due_out_of_range", error.message);
  return error.message;
}

describe("a timer due in 60 days", () => {
  it("has an alarm of exactly its due, and an alarm that comes early fires nothing", async () => {
    const object = fresh("sixty-days");
    const dueAt = Date.now() + 60 * DAY_MS;
    await object.call("schedule", { name: "late", dueAt, payload: { text: "late" } });
    assert.equal(await alarmOf(object), dueAt);
    for (let round = 0; round < 3; round += 1) {
      const report = await wakeEarly(object);
      assert.deepEqual([report.fired, report.nextAlarmAt], [0, dueAt]);
      assert.equal(await alarmOf(object), dueAt);
    }
    assert.deepEqual(await object.call("effects"), []);
    assert.equal((await object.call<{ state: string }>("get", "late")).state, "pending");
  });

  it("waits while others fire, and after a crash", async () => {
    const object = fresh("sixty-days-crash");
    const dueAt = Date.now() + 60 * DAY_MS;
    await object.call("schedule", { name: "late", dueAt, payload: { text: "late" } });
    await object.call("schedule", { after: 50, payload: { text: "soon" } });
    await until(() => object.call<Effect[]>("effects"), (found) => found.length === 1);
    await until(() => alarmOf(object), (alarm) => alarm === dueAt);
    await workerd.kill();
    await workerd.start();
    assert.equal(await alarmOf(object), dueAt);
    await object.call("schedule", { after: 50, payload: { text: "soon again" } });
    const found = await until(() => object.call<Effect[]>("effects"), (effects) => effects.length === 2);
    assert.deepEqual(found.map(({ text }) => text), ["soon", "soon again"]);
    await until(() => alarmOf(object), (alarm) => alarm === dueAt);
  });

  it("is reached through `after` too, and fires at once when it is moved to the present", async () => {
    const object = fresh("sixty-days-moved");
    const begun = Date.now();
    const { dueAt } = await object.call<{ dueAt: number }>("schedule", {
      name: "late",
      after: 60 * DAY_MS,
      payload: { text: "late" },
    });
    assert.ok(dueAt >= begun + 60 * DAY_MS && dueAt <= Date.now() + 60 * DAY_MS);
    await object.call("reschedule", "late", { after: 0 });
    const [effect] = await until(() => object.call<Effect[]>("effects"), (found) => found.length === 1);
    assert.equal(effect?.text, "late");
    assert.equal(await until(() => alarmOf(object), (alarm) => alarm === null), null);
  });
});

describe("the horizon", () => {
  it("takes the last millisecond of the year 9999, and sets alarms no later than 2100 for it", async () => {
    const object = fresh("last");
    await object.call("schedule", { name: "last", dueAt: DUE_MAX, payload: { text: "last" } });
    const view = await object.call<{ dueAt: number; nextAt: number }>("get", "last");
    assert.deepEqual([view.dueAt, view.nextAt], [DUE_MAX, DUE_MAX]);
    assert.deepEqual(await object.call("rows"), [DUE_MAX]);
    assert.equal(await alarmOf(object), ALARM_MAX);
    const report = await wakeEarly(object);
    assert.deepEqual([report.fired, await alarmOf(object)], [0, ALARM_MAX]);
    assert.deepEqual(await object.call("effects"), []);
  });

  it("refuses what lies behind it, and what is no time, with the bounds and the value", async () => {
    const object = fresh("behind");
    const beyond = ["253402300800000", "9007199254740991", "9223372036854775807", "1e300", "Infinity", "NaN", "-1", "-Infinity"];
    for (const dueAt of beyond) {
      const message = await refused(object.call("scheduleAt", dueAt));
      assert.ok(message.includes("9999-12-31T23:59:59.999Z"), message);
      assert.ok(message.includes(`not ${Number(dueAt)}`), message);
    }
    for (const after of ["9007199254740991", "253402300799999", "Infinity", "NaN", "-1"]) {
      await refused(object.call("scheduleAfter", after));
    }
    await refused(object.call("scheduleDate", "no date"));
    assert.deepEqual([await object.call("rows"), await alarmOf(object)], [[], null]);
  });
});

describe("a due in the past", () => {
  it("fires at once, late by as much as it was due before", async () => {
    const object = fresh("past");
    for (const [index, dueAt] of [1, 1_000_000_000_000, Date.now() - 60 * DAY_MS].entries()) {
      const begun = Date.now();
      await object.call("schedule", { dueAt, payload: { text: `past-${index}` } });
      const found = await until(() => object.call<Effect[]>("effects"), (effects) => effects.length > index);
      const effect = found[index];
      assert.deepEqual([effect?.text, effect?.due], [`past-${index}`, dueAt]);
      assert.ok(effect !== undefined && effect.at - begun < 5_000, "it was not at once");
      const reports = await until(() => reportsOf(object), (served) => served.filter(({ fired }) => fired > 0).length > index);
      const { worstLatenessMs } = reports.filter(({ fired }) => fired > 0)[index] ?? { worstLatenessMs: 0 };
      assert.ok(worstLatenessMs >= begun - dueAt && worstLatenessMs <= Date.now() - dueAt, `${worstLatenessMs} ms late`);
    }
  });
});
