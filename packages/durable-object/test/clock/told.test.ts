// Goal: what a handler tells commits with what becomes of its timer, or not at all. Method: an object under a virtual
// clock with one outbox, whose timers end in every way.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import {
  dead,
  done,
  reschedule,
  TimerObject,
  type BuiltIns,
  type Handlers,
  type Tickets,
  type ToldOutcome,
} from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type Kinds = { close: string; again: number; giveUp: undefined; wrong: unknown; throws: undefined };

let told: string[] = [];

const of = (...ids: string[]): ToldOutcome[] => ids.map((id) => ({ name: "mail", id, payload: { id } }));

class Room extends TimerObject<Kinds> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS closed (id TEXT)");
  }
  protected override handlers(): Handlers<Kinds> {
    return {
      close: {
        group: 8,
        run: ({ payload }) => done({ effects: () => this.#close(payload), outbox: of(payload, `${payload}/2`) }),
      },
      again: ({ payload, dueAt }) =>
        payload === 0 ? done({ outbox: of("over") }) : reschedule({ dueAt: dueAt + 1_000, payload: payload - 1 }, { outbox: of(`again ${payload}`) }),
      giveUp: () => dead("nobody wants it", { outbox: of("given up") }),
      wrong: { retry: { attempts: 1 }, run: ({ payload }) => done({ outbox: payload as never }) },
      throws: {
        retry: { attempts: 2, initial: 1_000, jitter: 0 },
        run: ({ attempt }) =>
          done({
            effects: () => {
              if (attempt === 1) {
                throw new Error("no");
              }
            },
            outbox: of(`attempt ${attempt}`),
          }),
      },
    };
  }
  protected override builtIns(): BuiltIns {
    return { outboxes: { mail: ({ id }) => void told.push(id) } };
  }
  #close(id: string): void {
    this.ctx.storage.sql.exec("INSERT INTO closed VALUES (?)", id);
  }
  letters() {
    return this.deadLetters.list();
  }
}

let clock: TestClock;
let room: TestObject<Room>;
beforeEach(async () => {
  told = [];
  clock = TestClock.install();
  room = await TestObject.open(clock, Room);
});
afterEach(() => clock.uninstall());

describe("what a handler tells", () => {
  it("is delivered behind the commit of its timer, in the order of the timers", async () => {
    for (const [index, id] of ["a", "b", "c"].entries()) {
      await room.instance.schedule("close", { after: 1_000 + index, payload: id });
    }
    await clock.advance(5_000);
    assert.deepEqual(told, ["a", "a/2", "b", "b/2", "c", "c/2"]);
    assert.deepEqual(room.sql("SELECT id FROM closed").map(({ id }) => id), ["a", "b", "c"]);
  });

  it("may come from timers that commit in one group", async () => {
    const dueAt = clock.now + 1_000;
    for (let number = 10; number < 30; number += 1) {
      await room.instance.schedule("close", { dueAt, payload: String(number) });
    }
    await clock.advance(5_000);
    assert.equal(told.length, 40);
    assert.deepEqual([...new Set(told)].length, 40);
    assert.equal(room.sql("SELECT id FROM closed").length, 20);
  });

  it("goes with a timer that comes again, and with one that is given up", async () => {
    await room.instance.schedule("again", { after: 0, payload: 2 });
    await room.instance.schedule("giveUp", { after: 5_000 });
    await clock.advance(10_000);
    assert.deepEqual(told, ["again 2", "again 1", "over", "given up"]);
    assert.equal((await room.instance.letters()).items.length, 1);
  });

  it("is not told if the effects beside it throw", async () => {
    await room.instance.schedule("throws", { after: 0 });
    await clock.advance(10_000);
    assert.deepEqual(told, ["attempt 2"]);
  });

  it("is looked at before anything is written", async () => {
    const wrong: [unknown, RegExp][] = [
      ["a", /a list of 0 to 18/],
      [Array.from({ length: 21 }, () => ({ name: "mail", id: "a" })), /a list of 0 to 18/],
      [[{ name: "post", id: "a" }], /unknown_kind: this object has no outbox `post`/],
      [[{ name: "mail", id: "" }], /the id of an outcome/],
      [[null], /the name of an outbox/],
    ];
    for (const [payload] of wrong) {
      await room.instance.schedule("wrong", { after: 0, payload });
      await clock.advance(10);
    }
    const { items } = await room.instance.letters();
    assert.equal(items.length, wrong.length);
    for (const [index, [, text]] of wrong.entries()) {
      assert.match(items[index]?.lastError ?? "", text);
    }
    await clock.advance(60_000);
    assert.deepEqual(told, []);
  });
});

it("the end of a ticket arrives at the sink of the outbox that tickets name", async () => {
  const ends: unknown[] = [];
  class Venue extends TimerObject<Record<string, never>> {
    protected override handlers(): Record<string, never> {
      return {};
    }
    protected override builtIns(): BuiltIns {
      return { tickets: { outbox: "ends" }, outboxes: { ends: ({ id, payload }) => void ends.push([id, payload]) } };
    }
    get tickets(): Tickets {
      return this.timers.tickets;
    }
  }
  const venue = await TestObject.open(clock, Venue);
  const opening = await venue.instance.tickets.open({ resource: "A1", ttl: 60_000 });
  await clock.advance(59_000);
  assert.deepEqual(ends, []);
  await clock.advance(2_000);
  assert.ok(opening.outcome === "new");
  const { id } = opening.ticket;
  const end = { v: 1, ticket: id, end: "expired", at_ms: clock.now - 1_000, resource: "A1" };
  assert.deepEqual(ends, [[id, end]]);
});
