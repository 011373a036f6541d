// The shorter programs of the documentation do what it says of them.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { Timers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";
import { Room } from "../../quick-start/src/index.js";
import { Session } from "../src/adopt.js";
import { takeOver } from "../src/from-agents.js";
import { Meeting } from "../src/many.js";
import { Meter } from "../src/recurring.js";

let clock: TestClock;
beforeEach(() => {
  clock = TestClock.install();
});
afterEach(() => clock.uninstall());

it("the room is closed half an hour after the last touch", async () => {
  const room = await TestObject.open(clock, Room);
  await room.instance.touch();
  await clock.advance(20 * 60_000);
  await room.instance.touch();
  const closes = clock.now + 30 * 60_000;
  await clock.advance(60 * 60_000);
  assert.deepEqual(room.sql("SELECT * FROM closed"), [{ reason: "nobody came", at: closes }]);
});

it("an object's own alarm goes on beside timers", async () => {
  const session = await TestObject.open(clock, Session);
  session.sql("CREATE TABLE visits (at INTEGER NOT NULL)");
  session.sql("INSERT INTO visits VALUES (?)", clock.now - 86_300_000);
  await (session.instance as unknown as { timers: Timers }).timers.setAlarm(clock.now + 1_000);
  await clock.advance(60_000);
  assert.equal(session.sql("SELECT * FROM visits").length, 1);
  await clock.advance(3_600_000);
  assert.equal(session.sql("SELECT * FROM visits").length, 0);
});

it("a timer that comes again and again does what it missed in one run, and does not drift", async () => {
  const meter = await TestObject.open(clock, Meter);
  const begins = clock.now - 86_400_000 - 20_000;
  await meter.instance.begin(begins);
  await meter.instance.begin(begins + 7_000);
  const opened = clock.now;
  await clock.advance(100_000);
  const due = (minute: number): number => begins + minute * 60_000;
  assert.deepEqual(meter.sql("SELECT * FROM samples"), [
    { at: opened + 1, missed: 1_440 },
    { at: due(1_441), missed: 0 },
    { at: due(1_442), missed: 0 },
  ]);
});

it("schedules of an agent become timers, once", async () => {
  const fired: string[] = [];
  class Agent extends DurableObject {
    readonly timers = new Timers<{ sendReminder: { message: string } }>(this.ctx, {
      handlers: { sendReminder: (timer) => void fired.push(timer.payload.message) },
    });
    override async alarm(info?: AlarmInvocationInfo): Promise<void> {
      await this.timers.alarm(info);
    }
    takeOver(): Promise<number> {
      return takeOver(this.ctx.storage, this.timers);
    }
  }
  const agent = await TestObject.open(clock, Agent);
  agent.sql("CREATE TABLE cf_agents_schedules (id TEXT PRIMARY KEY, callback TEXT, payload TEXT, type TEXT, time INTEGER)");
  const due = clock.now / 1_000 + 60;
  agent.sql("INSERT INTO cf_agents_schedules VALUES ('a', 'sendReminder', '{\"message\":\"tea\"}', 'delayed', ?)", due);
  agent.sql("INSERT INTO cf_agents_schedules VALUES ('b', 'digest', 'null', 'cron', ?)", due);
  assert.equal(await agent.instance.takeOver(), 1);
  assert.equal(await agent.instance.takeOver(), 0);
  await clock.advance(120_000);
  assert.deepEqual(fired, ["tea"]);
  assert.equal(agent.sql("SELECT * FROM cf_agents_schedules").length, 1);
});

it("a meeting is planned with all its guests, or not at all", async () => {
  const meeting = await TestObject.open(clock, Meeting);
  meeting.sql("CREATE TABLE reminded (guest TEXT)");
  const at = clock.now + 24 * 3_600_000;
  assert.equal(await meeting.instance.plan(at, ["ada", "bob", "ada"]), "not planned: ada was refused as invalid");
  assert.equal(meeting.alarmAt, null);
  assert.equal(await meeting.instance.plan(at, ["ada", "bob"]), "planned");
  await clock.advance(23 * 3_600_000);
  assert.deepEqual(meeting.sql("SELECT guest FROM reminded ORDER BY guest"), [{ guest: "ada" }, { guest: "bob" }]);
  await clock.advance(3_600_000);
  assert.deepEqual(meeting.sql("SELECT guest FROM reminded"), []);
});
