// Goal: an object that deletes everything leaves nothing behind, and one that goes on goes on as new. Method: `deleteAll()`
// from handlers of every kind and from requests, between and during alarms, under a virtual clock.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { detached, type Handlers, type LogEvent, type Settings } from "@dueline/durable-object";
import { TimerObject, type BuiltIns } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type Kinds = { expire: undefined; expireByCall: undefined; expireAndGoOn: undefined; slow: undefined; note: undefined };

let events: LogEvent[] = [];
let refused: unknown;

class Room extends TimerObject<Kinds> {
  readonly noted: string[] = [];
  protected override settings(): Settings {
    return { log: (event) => void events.push(event) };
  }
  protected override handlers(): Handlers<Kinds> {
    const wipe = (): Promise<void> => this.ctx.storage.deleteAll();
    return {
      expire: wipe,
      expireByCall: detached({ call: wipe }),
      expireAndGoOn: async () => {
        await wipe();
        await this.schedule("note", { name: "too early", after: 1_000 }).catch((thrown: unknown) => {
          refused = thrown;
        });
      },
      slow: () => new Promise<void>((resolve) => setTimeout(resolve, 2_000)),
      note: (timer) => () => void this.noted.push(timer.name ?? "anonymous"),
    };
  }
  protected override builtIns(): BuiltIns {
    return { outboxes: { mail: (message) => void this.noted.push(`mail ${message.id}`) }, leases: {} };
  }
  wipe(): Promise<void> {
    return this.ctx.storage.deleteAll();
  }
  get open() {
    return this.timers;
  }
}

let clock: TestClock;
let room: TestObject<Room>;
beforeEach(async () => {
  [events, refused] = [[], undefined];
  clock = TestClock.install();
  room = await TestObject.open(clock, Room);
});
afterEach(() => clock.uninstall());

const tables = (): unknown[] => room.sql("SELECT name FROM sqlite_master");
const thrown = (): unknown[] => room.alarms.map(({ error }) => error).filter((error) => error !== undefined);

for (const kind of ["expire", "expireByCall", "expireAndGoOn"] as const) {
  it(`${kind} leaves neither tables nor an alarm, and no alarm throws`, async () => {
    await room.instance.schedule("note", { name: "gone", after: 3_600_000 });
    await room.instance.schedule(kind, { after: 1_000 });
    await clock.advance(24 * 3_600_000);
    assert.deepEqual([tables(), room.alarmAt, thrown(), room.instance.noted], [[], null, [], []]);
    assert.equal(room.alarms.length, 1);
    await room.instance.schedule("note", { name: "new", after: 1_000 });
    await clock.advance(1_000);
    assert.deepEqual([room.instance.noted, thrown()], [["new"], []]);
  });
}

it("a verb behind it in a handler is refused, and says when it is not", async () => {
  await room.instance.schedule("expireAndGoOn", { after: 1_000 });
  await clock.advance(1_000);
  assert.match(String(refused), /^DuelineError: unavailable: .*the first call that comes while no alarm is served makes them anew/);
});

describe("a request deletes everything", () => {
  it("while an alarm is served: what that ran is over, and what comes behind it is there", async () => {
    await room.instance.schedule("slow", { name: "slow", after: 1_000 });
    await clock.advance(2_000);
    await room.instance.wipe();
    await assert.rejects(room.instance.schedule("note", { after: 1 }), /^DuelineError: unavailable: .*while no alarm is served/);
    await clock.advance(2_000);
    assert.deepEqual([tables(), thrown()], [[], []]);
    await room.instance.schedule("note", { name: "new", after: 1 });
    await clock.advance(1);
    assert.deepEqual([room.instance.noted, await room.instance.open.counts()], [["new"], []]);
  });

  it("and the verbs of built-in kinds begin anew", async () => {
    const { outboxes, leases } = room.instance.open;
    await leases.grant("door", { owner: "ada", term: 60_000 });
    await room.instance.wipe();
    const [granted] = await Promise.all([
      leases.grant("door", { owner: "bob", term: 60_000 }),
      outboxes.append("mail", [{ id: "a", payload: null }]),
    ]);
    assert.equal(granted.outcome, "granted");
    await clock.advance(1_000);
    assert.deepEqual([room.instance.noted, thrown()], [["mail a"], []]);
  });

  it("and nothing is told of it", async () => {
    await room.instance.schedule("note", { after: 5_000 });
    await room.instance.wipe();
    await room.instance.schedule("note", { after: 1_000 });
    await clock.advance(10_000);
    assert.deepEqual(events.map(({ type }) => type), ["alarm"]);
  });
});
