// Goal: a test can play the deploy of a new version. Method: two versions of a class over one test object.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TimerObject, type Handlers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";

let ran: string[] = [];

class First extends TimerObject<{ old: undefined; both: undefined }> {
  protected override handlers(): Handlers<{ old: undefined; both: undefined }> {
    return { old: () => void ran.push("old"), both: () => void ran.push("first") };
  }
}

class Second extends TimerObject<{ both: undefined; young: undefined }> {
  protected override handlers(): Handlers<{ both: undefined; young: undefined }> {
    return { both: () => void ran.push("second"), young: () => void ran.push("young") };
  }
  kinds(): Promise<unknown> {
    return this.timers.counts();
  }
}

let clock: TestClock;
beforeEach(() => {
  ran = [];
  clock = TestClock.install();
});
afterEach(() => clock.uninstall());

it("a new version has the timers of the old one, and its alarm", async () => {
  const first = await TestObject.open(clock, First);
  for (const kind of ["old", "both"] as const) {
    await first.instance.schedule(kind, { after: 1_000 });
  }
  const { alarmAt } = first;
  const second = await first.restart(Second);
  assert.equal(second.instance, first.instance);
  assert.equal(second.alarmAt, alarmAt);
  await second.instance.schedule("young", { after: 2_000 });
  await clock.advance(5_000);
  assert.deepEqual(ran, ["second", "young"]);
  const [left] = (await second.instance.kinds()) as { kind: string; isKnown: boolean; timers: number }[];
  assert.deepEqual([left?.kind, left?.isKnown, left?.timers], ["old", false, 1]);

  // Rolled back, and the old version stays for further restarts.
  await (await second.restart(First)).restart();
  await clock.advance(3_600_000);
  assert.deepEqual(ran, ["second", "young", "old"]);
});

it("an object that had no timers gets them", async () => {
  class Before extends DurableObject {
    note(): void {
      this.ctx.storage.sql.exec("CREATE TABLE notes (text TEXT)");
    }
  }
  const before = await TestObject.open(clock, Before);
  before.instance.note();
  const after = await before.restart(Second);
  await after.instance.schedule("young", { after: 1 });
  await clock.advance(1);
  assert.deepEqual(ran, ["young"]);
  assert.deepEqual(after.sql("SELECT * FROM notes"), []);
});

it("what is no clock, or no class, is said to be none", async () => {
  const words = /TestObject\.open takes the clock of TestClock\.install\(\) and the class/;
  await assert.rejects(TestObject.open(First as never, undefined as never), words);
  await assert.rejects(TestObject.open(clock, undefined as never), words);
  const named = TestObject.open(clock, First, { nmae: "a" } as never);
  await assert.rejects(named, /TestObject\.open: there is no option `nmae`; there are name, env/);
  clock.uninstall();
  assert.throws(() => TestClock.install({ sed: 5 } as never), /TestClock\.install: there is no option `sed`/);
});
