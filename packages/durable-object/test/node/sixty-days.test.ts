// Goal: 60 days pass for a real workerd. A timer that is due then does not fire an hour before, fires by its alarm
// alone when its due comes, and at once if the process starts later than that; its effect happens once.
// Method: each process is killed, and the next one has its wall clock moved; spans run in real time.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { movedBy } from "./moved-clock.js";
import { Workerd, until, type ObjectClient } from "./workerd.js";

interface Effect {
  readonly text: string;
  readonly at: number;
  readonly due: number;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** What a busy machine may take until a process answers and an alarm is served. */
const LATE_MS_MAX = 15_000;

describe("behind 60 days", () => {
  let workerd: Workerd;
  let object: ObjectClient;
  let other: ObjectClient;
  /** By how much the clock of the present process is ahead. */
  let movedMs: number;
  let due: number;

  const now = (): number => Date.now() + movedMs;
  const alarm = (): Promise<number | null> => object.call("alarm");
  const effects = (of: ObjectClient): Promise<Effect[]> => of.call("effects");

  /** Kills the process, and starts one whose clock begins at this time. */
  async function startAt(time: number): Promise<void> {
    await workerd.kill();
    movedMs = time - Date.now();
    await workerd.start(movedBy(movedMs));
  }

  /** Lets a timer of another object fire, so that whatever was due before it has had its alarm. */
  async function fireAnother(dueAt: number): Promise<void> {
    const before = (await effects(other)).length;
    await other.call("schedule", { dueAt, payload: { text: "another" } });
    await until(() => effects(other), (found) => found.length > before);
  }

  beforeEach(async () => {
    workerd = await Workerd.start({ entry: "horizon.js", classes: ["Horizon"] });
    object = workerd.object("Horizon", "far");
    other = workerd.object("Horizon", "other");
    movedMs = 0;
    due = Date.now() + 60 * DAY_MS;
    await object.call("schedule", { name: "far", dueAt: due, payload: { text: "far" } });
    assert.equal(await alarm(), due);
  });
  afterEach(() => workerd.stop());

  it("the clock of the process is the one that it was given", async () => {
    await startAt(due - HOUR_MS);
    const { dueAt } = await object.call<{ dueAt: number }>("schedule", { after: HOUR_MS, payload: { text: "" } });
    assert.ok(dueAt >= due && dueAt <= now() + HOUR_MS, `${dueAt - due} ms behind`);
  });

  it("a timer does not fire an hour too early, and fires at its due by its alarm alone", async () => {
    await startAt(due - HOUR_MS);
    await fireAnother(now() + 200);
    assert.deepEqual([await effects(object), await alarm()], [[], due]);
    await object.call("schedule", { after: 200, payload: { text: "soon" } });
    await until(() => effects(object), (found) => found.length > 0);
    await until(alarm, (at) => at === due);
    assert.deepEqual((await effects(object)).map(({ text }) => text), ["soon"]);

    // No request comes to the object before its timer has fired.
    await startAt(due - 6_000);
    await fireAnother(due + 1_000);
    const asked = now();
    const [, far, ...more] = await until(() => effects(object), (found) => found.length > 1);
    assert.deepEqual([far?.text, far?.due, more], ["far", due, []]);
    assert.ok(far !== undefined && far.at >= due, `it fired ${due - (far?.at ?? 0)} ms early`);
    assert.ok(far.at <= asked, "it waited for a request");
    assert.ok(far.at - due <= LATE_MS_MAX, `it fired ${far.at - due} ms late`);
    assert.equal(await until(alarm, (at) => at === null), null);
  });

  it("a timer that is asked for in its last seconds is still pending, and then fires", async () => {
    await startAt(due - 6_000);
    const seen: { readonly before: number; readonly count: number }[] = [];
    await until(
      async () => {
        const before = now();
        const { length: count } = await effects(object);
        seen.push({ before, count });
        return count;
      },
      (count) => count === 1,
      LATE_MS_MAX,
    );
    assert.ok(seen.length > 1, "it had fired before it was asked for");
    assert.ok(now() >= due, `it was there ${due - now()} ms early`);
    const [far] = await effects(object);
    assert.ok(far !== undefined && far.at >= due && far.at - due <= LATE_MS_MAX);
  });

  it("a process that starts a month too late fires it at once, by its alarm alone", async () => {
    await startAt(due + 30 * DAY_MS);
    const begun = now();
    await fireAnother(now() + 1_000);
    const asked = now();
    const [far, ...more] = await effects(object);
    assert.deepEqual([far?.text, far?.due, more], ["far", due, []]);
    assert.ok(far !== undefined && far.at <= asked && far.at - begun <= LATE_MS_MAX, "it was not at once");
  });
});
