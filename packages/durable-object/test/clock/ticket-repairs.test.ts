// Goal: a row that does not decode keeps one ticket and nobody else, and can be mended. Misuse is an error of its
// call. Method: rows are damaged past the object; each verb is called with arguments of the wrong form.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { BuiltIns, TicketEvent, Tickets } from "@dueline/durable-object/kinds";
import { Timers } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";
import { coded, giveBack, hold, openVenue, takeAway, written, type Venue } from "./venue.js";

const MINUTE_MS = 60_000;
/** The tables of tickets: the letter behind their keys' first three bytes. */
const TICKET = "x'62000274'";
const RESOURCE = "x'62000272'";

let clock: TestClock;
let venue: TestObject<Venue>;
let events: TicketEvent[];

beforeEach(async () => {
  clock = TestClock.install();
  events = [];
  venue = await openVenue(clock, {
    onEvent: (event) => void events.push(event),
    onClose: (_, end) => venue.instance.writing(end),
  });
});
afterEach(() => clock.uninstall());

/** Puts this into the only row of a table; what was there. */
function damage(table: string, by: unknown): unknown {
  const [row] = venue.sql("SELECT value FROM dueline_kv WHERE substr(key, 1, 4) = " + table);
  venue.sql(`UPDATE dueline_kv SET value = ? WHERE substr(key, 1, 4) = ${table}`, by);
  return row?.value;
}

describe("a ticket that cannot be closed", () => {
  it("is set aside, told of, and closed after a repair", async () => {
    const { tickets } = venue.instance;
    const { id } = await hold(venue, "A1", MINUTE_MS);
    const sound = damage(RESOURCE, Uint8Array.of(9));
    await assert.rejects(tickets.consume(id), coded("corrupt"));
    await assert.rejects(tickets.openCount({ resource: "A1" }), coded("corrupt"));
    await clock.advance(MINUTE_MS);
    const [aside] = (await tickets.setAside()).items;
    assert.ok(aside !== undefined && aside.reason !== "");
    const { reason } = aside;
    assert.deepEqual(aside, { id, since: clock.now, nextTryAt: clock.now + MINUTE_MS, tries: 1, reason });
    assert.deepEqual(events, [{ what: "set_aside", id, reason, tries: 1 }]);
    await clock.advance(MINUTE_MS);
    assert.equal((await tickets.setAside()).items[0]?.tries, 2);
    damage(RESOURCE, sound);
    assert.equal(await tickets.retry(id), true);
    await clock.advance(1);
    assert.deepEqual(await tickets.setAside(), { items: [] });
    assert.equal(await tickets.retry(id), false);
    assert.equal(await tickets.openCount({ resource: "A1" }), 0);
    assert.deepEqual(written(venue), ["expired"]);
  });

  it("is given up with effects, and what it was counted in is counted anew", async () => {
    const { tickets } = venue.instance;
    const { id } = await hold(venue, "A1", MINUTE_MS, { actor: "ann" });
    await hold(venue, "A1", 60 * MINUTE_MS, { actor: "ann" });
    const only = { effects: venue.instance.writing("given up") };
    assert.equal(await tickets.discard(id, only), undefined);
    // The first of the two rows: only that ticket's time will be over.
    venue.sql(`UPDATE dueline_kv SET value = x'63' WHERE key = unhex('62000274${id}')`);
    await clock.advance(MINUTE_MS);
    assert.deepEqual((await tickets.list()).unreadable, [id]);
    await assert.rejects(tickets.get(id), coded("corrupt"));
    const discarded = await tickets.discard(id, only);
    assert.deepEqual(discarded, { row: Uint8Array.of(0x63) });
    assert.equal(await tickets.discard(id, only), undefined);
    assert.deepEqual(written(venue), ["given up"]);
    assert.equal(await tickets.openCount({ resource: "A1" }), 2);
    assert.equal(await tickets.recount({ resource: "A1" }), 1);
    assert.equal(await tickets.recount({ actor: "ann" }), 1);
    assert.equal(await tickets.openCount({ resource: "A1" }), 1);
  });

  it("is given up with its figures if it decodes", async () => {
    const { tickets } = venue.instance;
    const ticket = await hold(venue, "A1", MINUTE_MS, { key: "1" });
    damage(RESOURCE, Uint8Array.of(9));
    await clock.advance(MINUTE_MS);
    const effects = (): void => {
      throw new RangeError("no");
    };
    await assert.rejects(tickets.discard(ticket.id, { effects }), RangeError);
    assert.equal((await tickets.setAside()).items.length, 1);
    const discarded = await tickets.discard(ticket.id);
    assert.deepEqual(discarded?.ticket, ticket);
    assert.ok((discarded?.row.length ?? 0) > 0);
    assert.equal(await tickets.find("1"), undefined);
    assert.equal(await tickets.recount({ resource: "A1" }), 0);
    assert.equal(await tickets.openCount({ resource: "A1" }), 0);
  });

  it("is listed by pages", async () => {
    const { tickets } = venue.instance;
    for (let number = 0; number < 3; number += 1) {
      await hold(venue, "A1", MINUTE_MS);
    }
    damage(TICKET, Uint8Array.of(9));
    await clock.advance(MINUTE_MS);
    const { items, next } = await tickets.setAside({ limit: 2 });
    assert.ok(items.length === 2 && next !== undefined);
    const rest = await tickets.setAside({ after: next });
    assert.deepEqual([rest.items.length, rest.next], [1, undefined]);
  });
});

const WRONG: Record<string, (tickets: Tickets, wrong: never) => Promise<unknown>> = {
  "a request": (tickets, wrong) => tickets.open(wrong),
  "a resource": (tickets, resource) => tickets.open({ resource, ttl: 1 }),
  "an actor": (tickets, actor) => tickets.open({ resource: "A1", ttl: 1, actor }),
  "a key": (tickets, key) => tickets.open({ resource: "A1", ttl: 1, key }),
  "a session": (tickets, session) => tickets.open({ resource: "A1", ttl: 1, session }),
  "a limit of the resource": (tickets, resourceMax) => tickets.open({ resource: "A1", ttl: 1, resourceMax }),
  "a limit of the actor": (tickets, actorMax) => tickets.open({ resource: "A1", ttl: 1, actor: "ann", actorMax }),
  "the ticket to use": (tickets, id) => tickets.consume(id),
  "the ticket to give back": (tickets, id) => tickets.release(id),
  "the ticket to cancel": (tickets, id) => tickets.cancel(id),
  "the ticket to extend": (tickets, id) => tickets.extend(id, 1),
  "the ticket to read": (tickets, id) => tickets.get(id),
  "the ticket to retry": (tickets, id) => tickets.retry(id),
  "the ticket to discard": (tickets, id) => tickets.discard(id),
  "the key to find": (tickets, key) => tickets.find(key),
  "what is counted": (tickets, wrong) => tickets.openCount(wrong),
  "the resource to count": (tickets, resource) => tickets.openCount({ resource }),
  "the actor to count": (tickets, actor) => tickets.openCount({ actor }),
  "what is counted anew": (tickets, wrong) => tickets.recount(wrong),
  "where a list goes on": (tickets, after) => tickets.list({ after }),
  "the limit of a list": (tickets, limit) => tickets.list({ limit }),
  "where a list of those set aside goes on": (tickets, after) => tickets.setAside({ after }),
  "the limit of those set aside": (tickets, limit) => tickets.setAside({ limit }),
};

for (const [what, call] of Object.entries(WRONG)) {
  it(`${what} may be wrong`, async () => {
    const { tickets } = venue.instance;
    for (const wrong of [0.5, {}, null, "\ud800", ""]) {
      await assert.rejects(call(tickets, wrong as never), coded("invalid"), String(wrong));
    }
    assert.equal((await tickets.open({ resource: "A1", ttl: 1 })).outcome, "new");
    assert.equal((await tickets.list()).items.length, 1);
  });
}

it("times, names over their bounds and limits without an actor are errors of their calls", async () => {
  const { tickets } = venue.instance;
  const open = (more: object): Promise<unknown> => tickets.open({ resource: "A1", ttl: 1, ...more });
  const { id } = await hold(venue, "A1", MINUTE_MS);
  for (const ttl of [0, 7 * 24 * 60 * MINUTE_MS]) {
    await assert.rejects(open({ ttl }), coded("invalid"));
    await assert.rejects(tickets.extend(id, ttl), coded("invalid"));
  }
  for (const ttl of [Number.NaN, -1, Infinity, "1"]) {
    await assert.rejects(open({ ttl }), coded("due_out_of_range"));
    await assert.rejects(tickets.extend(id, ttl as number), coded("due_out_of_range"));
  }
  for (const part of ["resource", "actor", "key"]) {
    await assert.rejects(open({ [part]: "x".repeat(257) }), coded("invalid"));
    await assert.rejects(open({ [part]: "\u00e9".repeat(129) }), coded("invalid"));
  }
  await assert.rejects(open({ session: "x".repeat(1025) }), coded("invalid"));
  await assert.rejects(open({ actorMax: 1 }), coded("invalid"));
  await assert.rejects(tickets.openCount({ resource: "A1", actor: "ann" } as never), coded("invalid"));
  await assert.rejects(tickets.consume(id, null as never), coded("invalid"));
  assert.equal((await tickets.list()).items.length, 1);
  assert.equal((await tickets.consume(id)).outcome, "done");
});

it("options may be wrong, and are looked at when the object is made", async () => {
  class Made extends DurableObject {
    wrong(builtIns: BuiltIns): Timers {
      return new Timers(this.ctx, { handlers: {}, builtIns });
    }
  }
  const made = await TestObject.open(clock, Made);
  const wrong = (tickets: unknown, code = "invalid"): void =>
    assert.throws(() => made.instance.wrong({ tickets } as BuiltIns), coded(code));
  wrong(true);
  wrong({ onClose: {} });
  wrong({ abort: "yes" });
  wrong({ onEvent: 1 });
  wrong({ ttlMax: 1 });
  wrong({ ttlMax: -1 }, "invalid");
  wrong({ abortTimeout: 0 });
  wrong({ callsPerTick: 0 });
  wrong({ callsPerTick: 1.5 });
  wrong({ outbox: "" }, "unknown_kind");
  wrong({ outbox: "of nobody" }, "unknown_kind");
  wrong({ outbox: {} }, "unknown_kind");
});

it("an object without tickets says so", async () => {
  await takeAway(venue);
  await assert.rejects(venue.instance.tickets.open({ resource: "A1", ttl: 1 }), coded("unknown_kind"));
});

it("its timers are counted, and known as long as the object has tickets", async () => {
  await hold(venue, "A1", MINUTE_MS);
  const shown = async () => (await venue.instance.counts()).map(({ kind, timers, isKnown }) => [kind, timers, isKnown]);
  assert.deepEqual(await shown(), [["$ticket_expiry", 1, true]]);
  await takeAway(venue);
  assert.deepEqual(await shown(), [["$ticket_expiry", 1, false]]);
  await clock.advance(2 * MINUTE_MS);
  assert.deepEqual(await shown(), [["$ticket_expiry", 1, false]]);
  await giveBack(venue);
  await clock.advance(60 * MINUTE_MS);
  assert.deepEqual([await shown(), written(venue)], [[], []]);
});

it("a ticket is held for less than `ttlMax` at a time, and for longer by being extended", async () => {
  venue = await openVenue(clock, { ttlMax: MINUTE_MS });
  const { tickets } = venue.instance;
  await assert.rejects(tickets.open({ resource: "A1", ttl: MINUTE_MS }), coded("invalid"));
  const { id } = await hold(venue, "A1", MINUTE_MS - 1);
  for (let minute = 0; minute < 3; minute += 1) {
    await clock.advance(MINUTE_MS - 2);
    assert.equal((await tickets.extend(id, MINUTE_MS - 1)).outcome, "done");
  }
  assert.equal((await tickets.consume(id)).outcome, "done");
});
