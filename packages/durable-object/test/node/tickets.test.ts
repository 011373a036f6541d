// Goal: tickets of an object that is killed end once, none early, and what commits with their opening and their end is
// there once. Method: a real workerd, `kill -9` while tickets are open and while they are expiring; and an object that
// counts its rows.
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { Workerd, until, type ObjectClient } from "./workerd.js";

interface Opened {
  readonly outcome: string;
  readonly ticket: { readonly id: string; readonly expiresAt: number };
}

interface End {
  readonly id: string;
  readonly resource: string;
  readonly ending: string;
  readonly at: number;
}

interface Seen {
  readonly held: string[];
  readonly used: string[];
  readonly ends: End[];
  readonly aborts: string[];
  readonly open: number;
}

interface Rows {
  readonly rows: number;
  readonly open: number;
  readonly alarm: number | null;
}

const SEATS = Array.from({ length: 60 }, (_, index) => `seat-${index}`);
const USED = 10;
const GIVEN = 20;
/** As long as a slow machine may need for everything that comes before the first end. */
const TTL_MS = 2_500;
/** Between one end and the next, so that a kill falls among them. */
const SPREAD_MS = 20;

async function started(t: TestContext): Promise<Workerd> {
  const workerd = await Workerd.start({ entry: "tickets.js", classes: ["Venue", "Lounge", "CountedTickets"] });
  t.after(() => workerd.stop());
  return workerd;
}

function seen(object: ObjectClient, isWanted: (seen: Seen) => boolean): Promise<Seen> {
  return until(() => object.call<Seen>("seen"), isWanted);
}

/** The first are ended by their holders, the others when their time is over. */
function open(object: ObjectClient, seat: string, index: number): Promise<Opened> {
  const ttl = index < GIVEN ? 60_000 : TTL_MS + index * SPREAD_MS;
  return object.call("open", { resource: seat, ttl, session: `session of ${seat}` });
}

// Each has a workerd of its own, and mostly waits.
describe("tickets", { concurrency: true }, () => {
  it("ends every ticket once through two kills, and writes what goes with it once", async (t) => {
    const workerd = await started(t);
    const venue = workerd.object("Venue", "concert");
    const opened: Opened[] = [];
    for (const [index, seat] of SEATS.entries()) {
      opened.push(await open(venue, seat, index));
    }
    const ids = opened.map(({ ticket }) => ticket.id);
    for (const id of ids.slice(0, USED)) {
      assert.equal((await venue.call<Opened>("consume", id)).outcome, "done");
    }
    await workerd.kill();
    await workerd.start();

    // Asked again, as by somebody who saw no answer.
    const last = SEATS.length - 1;
    const again = await open(venue, SEATS[last] ?? "", last);
    assert.deepEqual([again.outcome, again.ticket.id], ["existing", ids[last]]);
    for (const [index, id] of ids.slice(0, GIVEN).entries()) {
      const { outcome } = await venue.call<Opened>("release", id);
      assert.equal(outcome, index < USED ? "gone" : "done");
    }
    await seen(venue, ({ ends }) => ends.some(({ ending }) => ending === "expired"));
    await workerd.kill();
    await workerd.start();

    const { ends, held, used } = await seen(venue, ({ open: count }) => count === 0);
    assert.deepEqual([held, used], [SEATS, ids.slice(0, USED)]);
    assert.equal(ends.length, SEATS.length, "an end too many, or too few");
    const endOf = new Map(ends.map((end) => [end.id, end]));
    for (const [index, { ticket }] of opened.entries()) {
      const end = endOf.get(ticket.id);
      const ending = index < USED ? "consumed" : index < GIVEN ? "released" : "expired";
      assert.deepEqual([end?.resource, end?.ending], [SEATS[index], ending]);
      assert.ok(ending !== "expired" || (end?.at ?? 0) >= ticket.expiresAt, `${SEATS[index]} was closed early`);
    }
  });

  it("aborts the session of each ticket that expires behind a kill, and of no other", async (t) => {
    const workerd = await started(t);
    const lounge = workerd.object("Lounge", "concert");
    const seats = SEATS.slice(GIVEN - 1, GIVEN + 10);
    for (const [index, seat] of seats.entries()) {
      const { ticket } = await open(lounge, seat, GIVEN - 1 + index);
      if (index === 0) {
        await lounge.call("consume", ticket.id);
      }
    }
    await workerd.kill();
    await workerd.start();
    const { ends, aborts } = await seen(lounge, ({ open: count }) => count === 0);
    assert.deepEqual(ends.map(({ resource }) => resource).sort(), [...seats].sort());
    assert.deepEqual([...aborts].sort(), seats.slice(1).map((seat) => `session of ${seat}`).sort());
  });

  it("writes as many rows as it says", async (t) => {
    const workerd = await started(t);
    const object = workerd.object("CountedTickets", "expiring");
    const rested = (): Promise<Rows> =>
      until(() => object.call<Rows>("seen"), (seen) => seen.open === 0 && seen.alarm === null);
    await object.call("open", 1);
    const expired: number[][] = [];
    for (const count of [1, 20]) {
      const before = await rested();
      const opened = await object.call<number>("open", count);
      const after = await rested();
      expired.push([opened - before.rows, after.rows - opened]);
    }
    t.diagnostic(`rows written by tickets that are opened and expire: ${JSON.stringify(expired)}`);
    const [one, [opened = 0, closed = 0] = []] = expired;
    assert.deepEqual(one, [8, 7]);
    // A tick more or less, as the milliseconds have it.
    assert.ok(opened >= 103 && closed >= 102 && opened + closed <= 215, `${opened} and ${closed} rows for 20 tickets`);
  });
});
