// Goal: what an application adds to the end of its tickets commits with it or not at all, whoever ends them, and
// what it aborts and hears of never keeps one open. Method: hooks that write, fail, wait and hang.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { LogEvent, Ticket, TicketEnd, TicketEvent, TicketOptions } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { coded, hold, openVenue, written, type Venue } from "./venue.js";

const MINUTE_MS = 60_000;
/** Longer than the first back-off, a fifth of chance included. */
const BACK_OFF_MS = 6_001;

let clock: TestClock;
let venue: TestObject<Venue>;

beforeEach(() => {
  clock = TestClock.install();
});
afterEach(() => clock.uninstall());

const writing = (text: string): (() => void) => venue.instance.writing(text);

function collectGarbage(): void {
  setFlagsFromString("--expose_gc");
  (runInNewContext("gc") as () => void)();
}

describe("onClose", () => {
  const ends = async (): Promise<Ticket[]> => {
    const { tickets } = venue.instance;
    const held: Ticket[] = [];
    for (const resource of ["used", "given", "cancelled", "expired"]) {
      held.push(await hold(venue, resource, MINUTE_MS, { actor: "ann", data: resource }));
    }
    const [used, given, cancelled] = held.map(({ id }) => id);
    await tickets.consume(used ?? "", { effects: writing("a use") });
    await tickets.release(given ?? "");
    await tickets.cancel(cancelled ?? "");
    await clock.advance(MINUTE_MS);
    return held;
  };
  const all = [
    "consumed used",
    "a use",
    "released given",
    "cancelled cancelled",
    "expired expired",
  ];

  it("adds effects to every end, with those of the verb behind them", async () => {
    const told: [Ticket, TicketEnd][] = [];
    venue = await openVenue(clock, {
      onClose: (ticket, end) => {
        told.push([ticket, end]);
        return writing(`${end} ${ticket.resource}`);
      },
    });
    const [used] = await ends();
    assert.deepEqual(written(venue), all);
    assert.deepEqual(told[0], [used, "consumed"]);
    assert.deepEqual(await venue.instance.counts(), []);
  });

  it("may be asynchronous, or add nothing", async () => {
    venue = await openVenue(clock, {
      onClose: async (ticket, end) => {
        await Promise.resolve();
        return end === "released" ? undefined : writing(`${end} ${ticket.resource}`);
      },
    });
    await ends();
    assert.deepEqual(written(venue), all.filter((text) => !text.startsWith("released")));
  });

  it("adds nothing to an end that does not come to be", async () => {
    let asked = 0;
    venue = await openVenue(clock, {
      onClose: () => {
        asked += 1;
        return writing("closed");
      },
    });
    const { tickets } = venue.instance;
    const { id } = await hold(venue, "A1", MINUTE_MS);
    const thrown = new Error("sold out");
    const effects = (): void => {
      throw thrown;
    };
    await assert.rejects(tickets.consume(id, { effects }), thrown);
    assert.deepEqual([asked, written(venue)], [1, []]);
    assert.equal((await tickets.consume(id)).outcome, "done");
    assert.equal((await tickets.consume(id)).outcome, "gone");
    assert.deepEqual([asked, written(venue)], [2, ["closed"]]);
  });

  it("is asked again when its ticket has changed meanwhile, and only its last answer counts", async () => {
    let asked = 0;
    venue = await openVenue(clock, {
      onClose: async (ticket) => {
        asked += 1;
        const mine = asked;
        if (mine === 1) {
          await venue.instance.tickets.extend(ticket.id, 2 * MINUTE_MS);
        }
        return writing(`answer ${mine}`);
      },
    });
    const { id } = await hold(venue, "A1", MINUTE_MS);
    const consumed = await venue.instance.tickets.consume(id, { effects: writing("a use") });
    assert.ok(consumed.outcome === "done");
    assert.equal(consumed.ticket.expiresAt, clock.now + 2 * MINUTE_MS);
    assert.deepEqual(written(venue), ["answer 2", "a use"]);
  });

  const failures: [string, TicketOptions["onClose"], (error: unknown) => boolean][] = [
    [
      "throws",
      () => {
        throw new RangeError("no");
      },
      (error) => error instanceof RangeError,
    ],
    ["rejects", () => Promise.reject(new RangeError("no")), (error) => error instanceof RangeError],
    [
      "returns effects that throw",
      () => () => {
        writing("undone")();
        throw new RangeError("no");
      },
      (error) => error instanceof RangeError,
    ],
    ["returns something else", () => "closed" as never, coded("bad_outcome")],
    ["returns effects that wait", () => (async () => undefined) as never, coded("effects_async")],
  ];
  for (const [what, onClose, isError] of failures) {
    it(`that ${what} keeps the ticket: the verb fails, the alarm tries again`, async () => {
      let isSound = false;
      venue = await openVenue(clock, {
        onClose: (ticket, end) => (isSound ? writing(`${end} ${ticket.resource}`) : onClose?.(ticket, end)),
      });
      const { tickets } = venue.instance;
      const ticket = await hold(venue, "A1", MINUTE_MS);
      await assert.rejects(tickets.consume(ticket.id, { effects: writing("a use") }), isError);
      await assert.rejects(tickets.release(ticket.id), isError);
      assert.deepEqual(await tickets.get(ticket.id), ticket);
      await clock.advance(MINUTE_MS);
      assert.deepEqual(await tickets.get(ticket.id), ticket);
      assert.equal(await tickets.openCount({ resource: "A1" }), 1);
      assert.deepEqual(written(venue), []);
      isSound = true;
      await clock.advance(BACK_OFF_MS);
      assert.equal(await tickets.get(ticket.id), undefined);
      assert.deepEqual(written(venue), ["expired A1"]);
    });
  }

  it("that hangs keeps the alarm for five seconds, and its ticket until it answers", async () => {
    let isHanging = true;
    venue = await openVenue(clock, {
      onClose: (ticket) => (isHanging ? new Promise<void>(() => undefined) : writing(ticket.resource)),
    });
    const { id } = await hold(venue, "A1", MINUTE_MS);
    await clock.advance(MINUTE_MS + 5_000);
    assert.notEqual(await venue.instance.tickets.get(id), undefined);
    isHanging = false;
    await clock.advance(BACK_OFF_MS);
    assert.deepEqual(written(venue), ["A1"]);
  });

  it("of many tickets in one alarm is asked for each, and one that fails keeps only its own", async () => {
    let bad = "seat-5";
    venue = await openVenue(clock, {
      onClose: (ticket) => () => {
        writing(ticket.resource)();
        if (ticket.resource === bad) {
          throw new Error("no");
        }
      },
    });
    const names = Array.from({ length: 20 }, (_, number) => `seat-${number}`);
    for (const name of names) {
      await hold(venue, name, MINUTE_MS);
    }
    await clock.advance(MINUTE_MS + 100);
    assert.deepEqual(written(venue).sort(), names.filter((name) => name !== bad).sort());
    bad = "";
    await clock.advance(BACK_OFF_MS);
    assert.deepEqual(written(venue).sort(), [...names].sort());
  });

  it("asked by a verb outlives an alarm that ends meanwhile", async () => {
    venue = await openVenue(clock, { onClose: (ticket, end) => writing(`${end} ${ticket.resource}`) });
    const { tickets } = venue.instance;
    for (let turn = 0; turn < 10; turn += 1) {
      const { id } = await hold(venue, "used", 10 * MINUTE_MS);
      await hold(venue, "left", MINUTE_MS);
      const alarm = clock.advance(MINUTE_MS);
      // Begun a little later each time, and so in another step of the alarm.
      for (let step = 0; step < turn * 3; step += 1) {
        await Promise.resolve();
      }
      const consumed = tickets.consume(id, { effects: writing("a use") });
      await alarm;
      assert.equal((await consumed).outcome, "done");
    }
    const times = (text: string): number => written(venue).filter((found) => found === text).length;
    assert.deepEqual(["consumed used", "a use", "expired left"].map(times), [10, 10, 10]);
  });

  it("leaves nothing in memory behind its commit, by whomever it was asked", async () => {
    const effects: WeakRef<() => void>[] = [];
    venue = await openVenue(clock, {
      onClose: (_, end) => {
        const made = writing(end);
        effects.push(new WeakRef(made));
        return made;
      },
    });
    const { id } = await hold(venue, "A1", MINUTE_MS);
    await hold(venue, "A2", MINUTE_MS);
    await venue.instance.tickets.consume(id);
    const left = async (): Promise<number> => {
      await clock.settle();
      collectGarbage();
      return effects.filter((made) => made.deref() !== undefined).length;
    };
    assert.deepEqual([effects.length, await left()], [1, 0]);
    await clock.advance(MINUTE_MS);
    assert.deepEqual([effects.length, await left()], [2, 0]);
    assert.deepEqual(written(venue), ["consumed", "expired"]);
  });

  it("is not lost with an object that goes away behind a failure", async () => {
    let isSound = false;
    venue = await openVenue(clock, {
      onClose: () => {
        assert.ok(isSound);
        return writing("closed");
      },
    });
    await hold(venue, "A1", MINUTE_MS);
    await clock.advance(MINUTE_MS);
    await venue.restart();
    isSound = true;
    await clock.advance(BACK_OFF_MS);
    assert.deepEqual(written(venue), ["closed"]);
  });
});

describe("abort", () => {
  it("aborts the sessions of tickets that expire or are cancelled, and no others", async () => {
    const aborted: (string | undefined)[] = [];
    venue = await openVenue(clock, {
      abort: async (ticket) => {
        await Promise.resolve();
        assert.notEqual(await venue.instance.tickets.get(ticket.id), undefined, "closed before its session");
        aborted.push(ticket.session);
      },
      onClose: (ticket, end) => writing(`${end} ${ticket.resource}`),
    });
    const { tickets } = venue.instance;
    await hold(venue, "expired", MINUTE_MS, { session: "1" });
    await hold(venue, "without", MINUTE_MS);
    const cancelled = await hold(venue, "cancelled", MINUTE_MS, { session: "2" });
    const given = await hold(venue, "given", MINUTE_MS, { session: "3" });
    await tickets.cancel(cancelled.id);
    await tickets.release(given.id);
    await clock.advance(MINUTE_MS);
    assert.deepEqual(aborted, ["2", "1"]);
    assert.deepEqual(written(venue).sort(), ["cancelled cancelled", "expired expired", "expired without", "released given"]);
    assert.deepEqual((await tickets.list()).items, []);
  });

  it("that fails or hangs is told of, and the ticket is closed", async () => {
    const events: TicketEvent[] = [];
    venue = await openVenue(clock, {
      abort: (ticket) => {
        if (ticket.session === "hangs") {
          return new Promise(() => undefined);
        }
        throw new Error("the provider is away");
      },
      abortTimeout: 1_000,
      onEvent: (event) => void events.push(event),
    });
    const fails = await hold(venue, "A1", MINUTE_MS, { session: "fails" });
    const hangs = await hold(venue, "A2", MINUTE_MS, { session: "hangs" });
    await clock.advance(MINUTE_MS + 999);
    assert.deepEqual((await venue.instance.tickets.list()).items, [hangs]);
    await clock.advance(100);
    assert.deepEqual((await venue.instance.tickets.list()).items, []);
    const [first, second] = events;
    assert.deepEqual(first, { what: "abort_failed", id: fails.id, error: "the provider is away" });
    assert.ok(second?.what === "abort_failed" && second.id === hangs.id);
    assert.equal(events.length, 2);
  });

  it("is called for as many tickets at a time as it says", async () => {
    let running = 0;
    let most = 0;
    const options: TicketOptions = {
      abort: async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setTimeout(resolve, 10));
        running -= 1;
      },
      callsPerTick: 3,
    };
    venue = await openVenue(clock, options);
    for (let number = 0; number < 10; number += 1) {
      await hold(venue, `seat-${number}`, MINUTE_MS, { session: "s" });
    }
    await clock.advance(2 * MINUTE_MS);
    assert.equal(most, 3);
    assert.deepEqual((await venue.instance.tickets.list()).items, []);
  });
});

it("an abort has a signal, which is aborted when nobody waits any more", async () => {
  const reasons: string[] = [];
  venue = await openVenue(clock, {
    abort: ({ session, signal }) =>
      new Promise((resolve) => {
        assert.equal(signal.aborted, false);
        signal.addEventListener("abort", () => reasons.push(`${session}: ${(signal.reason as Error).name}`));
        setTimeout(resolve, session === "late" ? 2_000 : 500);
      }),
    abortTimeout: 1_000,
  });
  await hold(venue, "A1", MINUTE_MS, { session: "in time" });
  await hold(venue, "A2", MINUTE_MS, { session: "late" });
  await clock.advance(MINUTE_MS + 999);
  assert.deepEqual(reasons, []);
  await clock.advance(10_000);
  assert.deepEqual(reasons, ["late: TimeoutError"]);
  assert.deepEqual((await venue.instance.tickets.list()).items, []);
});

it("onEvent may throw or reject: nobody waits for it, and the log is told", async () => {
  const events: LogEvent[] = [];
  let isAsync = false;
  const options: TicketOptions = {
    abort: () => {
      throw new Error("away");
    },
    onEvent: (() => {
      if (isAsync) {
        return Promise.reject(new Error("the meter is away"));
      }
      throw new Error("the meter is away");
    }) as () => void,
  };
  venue = await openVenue(clock, options, (event) => void events.push(event));
  await hold(venue, "A1", MINUTE_MS, { session: "s" });
  await clock.advance(MINUTE_MS);
  isAsync = true;
  await hold(venue, "A1", MINUTE_MS, { session: "s" });
  await clock.advance(MINUTE_MS);
  assert.deepEqual((await venue.instance.tickets.list()).items, []);
  const failed = events.map((event) => (event.type === "hook" && event.hook === "onEvent" ? event.error : undefined));
  assert.deepEqual(failed.filter((error) => error !== undefined), ["the meter is away", "the meter is away"]);
});

it("each end is told to the outbox in the commit that makes it", async () => {
  venue = await openVenue(clock, { outbox: "ends", onClose: () => writing("closed") });
  const { tickets } = venue.instance;
  const used = await hold(venue, "A1", MINUTE_MS, { actor: "ann", data: { price: 12 } });
  const failing = (): void => {
    throw new Error("no");
  };
  const outcomes = (): unknown[] =>
    venue
      .sql<{ value: ArrayBuffer }>("SELECT value FROM dueline_kv WHERE substr(key, 1, 4) = x'6200086f' ORDER BY key")
      .map(({ value }) => new TextDecoder().decode(value))
      .map((text) => JSON.parse(text.slice(text.indexOf("{"))) as unknown);
  await assert.rejects(tickets.consume(used.id, { effects: failing }));
  assert.deepEqual(outcomes(), []);
  await tickets.consume(used.id);
  const { id } = await hold(venue, "A2", MINUTE_MS);
  await clock.advance(MINUTE_MS);
  const consumed = {
    v: 1,
    ticket: used.id,
    end: "consumed",
    at_ms: clock.now - MINUTE_MS,
    resource: "A1",
    actor: "ann",
    data: '{"price":12}',
  };
  assert.deepEqual(outcomes(), [consumed, { v: 1, ticket: id, end: "expired", at_ms: clock.now, resource: "A2" }]);
  assert.deepEqual(written(venue), ["closed", "closed"]);
});
