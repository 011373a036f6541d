// Goal: an object with 100,000 overdue timers works them off in bounded alarms and goes on answering.
// Method: a real workerd, the default budget, a client that asks and schedules all the while.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { spread } from "./figures.js";
import { Workerd } from "./workerd.js";

const TIMERS = 100_000;
const PAGE = 5_000;
/** The default budget of a tick, and the most ticks of an alarm that is behind. */
const FIRED_MAX = 128;
const TICKS_MAX = 16;
/** As many scheduled in between; each waits a day. */
const BETWEEN = 50;

interface Alarm {
  readonly began: number;
  readonly ended: number;
  readonly ticks: number;
  readonly fired: number;
}

interface Count {
  readonly effects: number;
  readonly alarms: number;
}

describe("a backlog", () => {
  it("of 100,000 overdue timers drains in bounded alarms while requests are answered", async (t) => {
    const workerd = await Workerd.start({ entry: "backlog.js", classes: ["Backlog"] });
    t.after(() => workerd.stop());
    const object = workerd.object("Backlog", "one");
    await object.call("hold");
    const filling = Date.now();
    for (let from = 0; from < TIMERS; from += PAGE) {
      await object.call("fill", from, PAGE, filling);
    }
    const filled = Date.now() - filling;
    assert.equal(await object.call("left"), TIMERS);

    const begun = Date.now();
    await object.call("release");
    const answers: number[] = [];
    const seen = new Set<number>();
    let scheduled = 0;
    let effects = 0;
    while (effects < TIMERS) {
      const asked = Date.now();
      assert.ok(asked - begun < 600_000, `${effects} of ${TIMERS} fired in ten minutes`);
      if (scheduled < BETWEEN && answers.length % 2 === 1) {
        await object.call("schedule", scheduled);
        scheduled += 1;
      } else {
        const count = await object.call<Count>("count");
        effects = count.effects;
        seen.add(effects);
      }
      answers.push(Date.now() - asked);
    }
    const took = Date.now() - begun;

    assert.equal(await object.call("twice"), 0);
    assert.equal(await object.call("left"), scheduled);
    const alarms = await object.call<Alarm[]>("alarms");
    const above = alarms.filter(({ ticks, fired }) => ticks > TICKS_MAX || fired > ticks * FIRED_MAX);
    assert.deepEqual(above, []);
    assert.equal(alarms.reduce((sum, { fired }) => sum + fired, 0), TIMERS);
    const lengths = alarms.map(({ began, ended }) => ended - began);
    assert.ok(Math.max(...lengths) < 30_000, "an alarm took longer than a tick may");
    // The client saw the backlog at many heights: it was let in between the ticks. It asks without a pause, so
    // a fast machine, which drains sooner, also answers it sooner.
    assert.ok(seen.size >= 10, `answers at ${seen.size} heights of the backlog`);
    assert.equal(scheduled, BETWEEN);

    const rate = Math.round((TIMERS * 1_000) / took);
    t.diagnostic(`${TIMERS} timers: scheduled in ${filled} ms, drained in ${took} ms (${rate} a second) by ${alarms.length} alarms`);
    t.diagnostic(`an alarm took ${spread(lengths)}; ${answers.length} requests in between were answered in ${spread(answers)}`);
  });
});
