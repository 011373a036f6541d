// Goal: tickets as an object has them: counted and limited, one for a key, ended once, with effects that commit
// with each change. Method: an object under a virtual clock, its own table beside the tickets.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Ticket } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { coded, hold, openVenue, written, type Venue } from "./venue.js";

let clock: TestClock;
let venue: TestObject<Venue>;

beforeEach(async () => {
  clock = TestClock.install();
  venue = await openVenue(clock);
});
afterEach(() => clock.uninstall());

describe("opening", () => {
  it("gives a ticket with everything that was asked for", async () => {
    const { tickets } = venue.instance;
    const data = { row: "A", places: [1, 2] };
    const request = { resource: "A1", ttl: 60_000, actor: "ann", key: "request-1", session: "checkout-1", data };
    const opened = await tickets.open(request);
    assert.ok(opened.outcome === "new");
    const { id, ...ticket } = opened.ticket;
    assert.match(id, /^[0-9a-f]{32}$/);
    assert.deepEqual(ticket, {
      resource: "A1",
      actor: "ann",
      key: "request-1",
      session: "checkout-1",
      data,
      openedAt: clock.now,
      expiresAt: clock.now + 60_000,
      isCancelled: false,
    });
    assert.deepEqual(await tickets.get(id), opened.ticket);
    assert.deepEqual(await tickets.find("request-1"), opened.ticket);
    assert.equal(await tickets.get("0".repeat(32)), undefined);
    assert.equal(await tickets.find("request-2"), undefined);
  });

  it("keeps data of every form, up to its bound", async () => {
    const { tickets } = venue.instance;
    const bytes = Uint8Array.of(0, 255, 1);
    for (const data of [undefined, null, "text", 1.5, bytes, "x".repeat(16 * 1024 - 2)]) {
      const ticket = await hold(venue, "seat", 1_000, { data });
      assert.deepEqual((await tickets.get(ticket.id))?.data, data);
    }
    const tooMuch = tickets.open({ resource: "seat", ttl: 1_000, data: "x".repeat(16 * 1024 - 1) });
    await assert.rejects(tooMuch, coded("payload_too_large"));
    await assert.rejects(tickets.open({ resource: "seat", ttl: 1, data: 1n }), coded("payload_not_serializable"));
  });

  it("under a key gives the same request the same ticket, and refuses another", async () => {
    const { tickets } = venue.instance;
    const request = { resource: "A1", ttl: 60_000, actor: "ann", key: "once", data: [1] };
    const first = await tickets.open(request);
    const again = await tickets.open({ ...request, session: "another", effects: venue.instance.writing("again") });
    assert.ok(first.outcome === "new");
    assert.deepEqual(again, { outcome: "existing", ticket: first.ticket });
    const { id } = first.ticket;
    for (const other of [{ resource: "A2" }, { ttl: 1 }, { actor: "bob" }, { data: [2] }]) {
      const refused = await tickets.open({ ...request, ...other, effects: venue.instance.writing("other") });
      assert.deepEqual(refused, { outcome: "refused", reason: "key_taken", id });
    }
    await tickets.cancel(id);
    assert.deepEqual(await tickets.open(request), { outcome: "refused", reason: "key_closing", id });
    await clock.advance(1);
    assert.equal((await tickets.open(request)).outcome, "new");
    assert.deepEqual(written(venue), []);
  });

  it("refuses what would be too many of a resource or of an actor, with the figures", async () => {
    const { tickets } = venue.instance;
    const { writing } = { writing: (text: string) => venue.instance.writing(text) };
    await hold(venue, "A1", 60_000, { actor: "ann", resourceMax: 2, actorMax: 2, effects: writing("1") });
    await hold(venue, "A1", 60_000, { actor: "bob", resourceMax: 2 });
    const resource = await tickets.open({ resource: "A1", ttl: 1, resourceMax: 2, effects: writing("2") });
    assert.deepEqual(resource, { outcome: "refused", reason: "resource_full", open: 2, openMax: 2 });
    await hold(venue, "A2", 60_000, { actor: "ann", actorMax: 2 });
    const actor = await tickets.open({ resource: "A3", ttl: 1, actor: "ann", actorMax: 1, effects: writing("3") });
    assert.deepEqual(actor, { outcome: "refused", reason: "actor_full", open: 2, openMax: 1 });
    assert.equal(await tickets.openCount({ resource: "A1" }), 2);
    assert.equal(await tickets.openCount({ actor: "ann" }), 2);
    assert.equal(await tickets.openCount({ actor: "carol" }), 0);
    assert.deepEqual(written(venue), ["1"]);
  });

  it("of many at once never gives more than there are", async () => {
    const { tickets } = venue.instance;
    const requests = Array.from({ length: 5 }, (_, number) =>
      tickets.open({ resource: "A1", ttl: 60_000, resourceMax: 2, effects: venue.instance.writing(String(number)) }),
    );
    const opened = await Promise.all(requests);
    assert.equal(opened.filter(({ outcome }) => outcome === "new").length, 2);
    assert.equal(await tickets.openCount({ resource: "A1" }), 2);
    assert.equal(written(venue).length, 2);
  });
});

describe("a ticket", () => {
  it("is used, or given back, once and in time", async () => {
    const { tickets } = venue.instance;
    const used = await hold(venue, "A1", 60_000, { actor: "ann", key: "1" });
    const given = await hold(venue, "A2", 60_000);
    await clock.advance(59_999);
    assert.deepEqual(await tickets.consume(used.id), { outcome: "done", ticket: used });
    assert.deepEqual(await tickets.release(given.id), { outcome: "done", ticket: given });
    for (const { id } of [used, given]) {
      assert.deepEqual(await tickets.consume(id), { outcome: "gone" });
      assert.deepEqual(await tickets.release(id), { outcome: "gone" });
      assert.deepEqual(await tickets.cancel(id), { outcome: "gone" });
      assert.deepEqual(await tickets.extend(id, 1_000), { outcome: "gone" });
    }
    assert.equal(await tickets.openCount({ resource: "A1" }), 0);
    assert.equal(await tickets.find("1"), undefined);
    await clock.advance(1);
    assert.deepEqual(await venue.instance.counts(), []);
  });

  it("expires by the alarm, and not before; until then it counts and cannot be used", async () => {
    const { tickets } = venue.instance;
    const ticket = await hold(venue, "A1", 60_000, { actor: "ann", key: "1" });
    assert.equal(venue.alarmAt, clock.now + 60_000);
    await clock.advance(59_999);
    assert.deepEqual(await tickets.get(ticket.id), ticket);
    await clock.advance(1);
    assert.equal(await tickets.get(ticket.id), undefined);
    assert.equal(await tickets.openCount({ actor: "ann" }), 0);
    assert.deepEqual((await tickets.list()).items, []);
    assert.equal((await tickets.open({ resource: "A1", ttl: 1, key: "1" })).outcome, "new");
  });

  it("expires in an object that was away", async () => {
    await hold(venue, "A1", 60_000, { key: "1" });
    await venue.restart();
    assert.equal(await venue.instance.tickets.openCount({ resource: "A1" }), 1);
    await clock.advance(60_000);
    assert.equal(await venue.instance.tickets.openCount({ resource: "A1" }), 0);
    assert.deepEqual(await venue.instance.counts(), []);
  });

  it("is held for longer, and never shorter", async () => {
    const { tickets } = venue.instance;
    const ticket = await hold(venue, "A1", 60_000);
    await clock.advance(30_000);
    const longer = await tickets.extend(ticket.id, 60_000);
    const expiresAt = clock.now + 60_000;
    assert.deepEqual(longer, { outcome: "done", ticket: { ...ticket, expiresAt } });
    const effects = venue.instance.writing("shorter");
    const shorter = await tickets.extend(ticket.id, 1_000, { effects });
    assert.deepEqual(shorter, longer);
    await clock.advance(59_999);
    assert.equal((await tickets.get(ticket.id))?.expiresAt, expiresAt);
    await clock.advance(1);
    assert.equal(await tickets.get(ticket.id), undefined);
    assert.deepEqual(written(venue), []);
  });

  it("that is cancelled is closed at once by the alarm", async () => {
    const { tickets } = venue.instance;
    const ticket = await hold(venue, "A1", 60_000);
    const cancelled = { ...ticket, expiresAt: clock.now, isCancelled: true };
    assert.deepEqual(await tickets.cancel(ticket.id), { outcome: "done", ticket: cancelled });
    const effects = venue.instance.writing("late");
    for (const late of [
      tickets.consume(ticket.id, { effects }),
      tickets.release(ticket.id, { effects }),
      tickets.cancel(ticket.id, { effects }),
      tickets.extend(ticket.id, 1_000, { effects }),
    ]) {
      assert.deepEqual(await late, { outcome: "expired", ticket: cancelled });
    }
    await clock.advance(1);
    assert.equal(await tickets.get(ticket.id), undefined);
    await clock.advance(60_000);
    assert.deepEqual([written(venue), await venue.instance.counts()], [[], []]);
  });

  it("is listed with all others in the order of their ids", async () => {
    const { tickets } = venue.instance;
    const held: Ticket[] = [];
    for (let number = 0; number < 5; number += 1) {
      held.push(await hold(venue, `seat-${number}`, 60_000));
    }
    held.sort((a, b) => (a.id < b.id ? -1 : 1));
    const first = await tickets.list({ limit: 3 });
    assert.deepEqual([first.items, first.unreadable], [held.slice(0, 3), []]);
    assert.ok(first.next !== undefined);
    assert.deepEqual(await tickets.list({ after: first.next }), { items: held.slice(3), unreadable: [] });
    assert.equal((await tickets.list()).items.length, 5);
  });
});

describe("effects", () => {
  it("are done with the change that they go with", async () => {
    const { tickets } = venue.instance;
    const doing = (text: string) => ({ effects: venue.instance.writing(text) });
    const open = (text: string) => hold(venue, "A1", 60_000, doing(text));
    const [used, given, cancelled] = [await open("open 1"), await open("open 2"), await open("open 3")];
    await tickets.extend(used.id, 120_000, doing("extend"));
    await tickets.consume(used.id, doing("consume"));
    await tickets.release(given.id, doing("release"));
    await tickets.cancel(cancelled.id, doing("cancel"));
    await tickets.consume(used.id, doing("consume twice"));
    const all = ["open 1", "open 2", "open 3", "extend", "consume", "release", "cancel"];
    assert.deepEqual(written(venue), all);
    await venue.restart();
    await clock.advance(60_000);
    assert.deepEqual(written(venue), all);
  });

  it("that throw undo the change, and their error is the verb's", async () => {
    const { tickets } = venue.instance;
    const ticket = await hold(venue, "A1", 60_000);
    const thrown = new TypeError("no");
    const effects = (): void => {
      venue.instance.writing("undone")();
      throw thrown;
    };
    await assert.rejects(tickets.open({ resource: "A1", ttl: 1, effects }), thrown);
    await assert.rejects(tickets.consume(ticket.id, { effects }), thrown);
    await assert.rejects(tickets.release(ticket.id, { effects }), thrown);
    await assert.rejects(tickets.cancel(ticket.id, { effects }), thrown);
    await assert.rejects(tickets.extend(ticket.id, 120_000, { effects }), thrown);
    assert.deepEqual((await tickets.list()).items, [ticket]);
    assert.equal(await tickets.openCount({ resource: "A1" }), 1);
    assert.deepEqual(written(venue), []);
    assert.equal((await tickets.consume(ticket.id)).outcome, "done");
  });

  it("that wait are refused, and nothing changes", async () => {
    const { tickets } = venue.instance;
    const ticket = await hold(venue, "A1", 60_000);
    const effects = async (): Promise<void> => undefined;
    await assert.rejects(tickets.consume(ticket.id, { effects: effects as never }), coded("effects_async"));
    await assert.rejects(tickets.consume(ticket.id, { effects: "now" as never }), coded("invalid"));
    const verb = (): void => void tickets.release(ticket.id).catch(() => undefined);
    assert.equal((await tickets.extend(ticket.id, 90_000, { effects: verb })).outcome, "done");
    assert.notEqual(await tickets.get(ticket.id), undefined);
  });
});
