// Goal: a version that cannot be opened loses no timer, however long it is deployed: the object is woken until it can.
// Method: objects that are opened again with kinds that are refused, under a virtual clock. The test object makes no instance
// by itself, so each of the platform's tries is one more `restart`.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TimerObject, type Handlers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type Kinds = { note: undefined };

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];
let noted = 0;

class Sound extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return { note: () => void (noted += 1) };
  }
}
class Broken extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return { note: { run: () => undefined, retry: { attempts: 0 } } };
  }
}

let clock: TestClock;
let object: TestObject<Sound>;
beforeEach(async () => {
  noted = 0;
  clock = TestClock.install();
  object = await TestObject.open(clock, Sound);
});
afterEach(() => clock.uninstall());

const broken = (): Promise<void> => assert.rejects(object.restart(Broken), /^DuelineError: invalid: .*`attempts` of the kind `note`/);

it("is woken a minute later, again and again, once its timers are due", async () => {
  await object.instance.schedule("note", { name: "a", after: MINUTE_MS });
  await broken();
  for (let tries = 0; tries < 20; tries += 1) {
    // The platform has tried, and given up.
    await clock.advance(HOUR_MS);
    assert.equal(object.alarmAt, null);
    await broken();
    assert.equal(object.alarmAt, clock.now + MINUTE_MS);
  }
  // The version is mended in time for the next one, and nobody else calls.
  await clock.advance(MINUTE_MS - 1);
  await object.restart(Sound);
  await clock.advance(1);
  assert.equal(noted, 1);
  assert.equal(object.alarmAt, null);
});

it("keeps an alarm that is still to come", async () => {
  const { dueAt } = await object.instance.schedule("note", { name: "a", after: HOUR_MS });
  await broken();
  assert.equal(object.alarmAt, dueAt);
});

it("is left alone without timers, and where it never was opened", async () => {
  await object.instance.schedule("note", { name: "a", after: 1 });
  await clock.advance(1);
  assert.equal(noted, 1);
  await broken();
  assert.equal(object.alarmAt, null);
  let alarm: number | null = 0;
  class New extends Broken {
    constructor(ctx: DurableObjectState, env: unknown) {
      super(ctx, env);
      void ctx.blockConcurrencyWhile(async () => {
        alarm = await ctx.storage.getAlarm();
      });
    }
  }
  await assert.rejects(TestObject.open(clock, New), /attempts/);
  assert.equal(alarm, null);
});
