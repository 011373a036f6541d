// Goal: a timer of a built-in kind that was given up is listed by the kind's name, and once it is scheduled again the
// kind goes on as if nothing had been. Method: the one timer of each kind is made a dead letter past the object, in
// the rows that FORMAT.md has for that.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { TimerObject, type BuiltInKind, type BuiltIns, type DeadLetters, type Timers } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type Kinds = { note: undefined };

const MINUTE_MS = 60_000;
/** Behind the window of a quota, and the half minute for which its row stays. */
const WINDOW_MS = MINUTE_MS;
const QUOTA_MS = 2 * WINDOW_MS + 30_000;

class Shop extends TimerObject<Kinds> {
  readonly arrived: string[] = [];
  protected override handlers() {
    return { note: () => undefined };
  }
  protected override builtIns(): BuiltIns {
    return {
      leases: {},
      tickets: {},
      reservations: {},
      quotas: { api: { window: WINDOW_MS } },
      outboxes: { mail: ({ id }) => void this.arrived.push(id) },
      gated: { look: ({ keys }) => keys.map(() => true), release: (record) => () => void this.arrived.push(record) },
    };
  }
  get verbs(): Timers<Kinds> {
    return this.timers;
  }
  get dead(): DeadLetters<Kinds, BuiltInKind> {
    return this.deadLetters;
  }
}

let clock: TestClock;
let object: TestObject<Shop>;
beforeEach(async () => {
  clock = TestClock.install({ now: "2030-06-01T20:00:00Z" });
  object = await TestObject.open(clock, Shop);
});
afterEach(() => clock.uninstall());

const hexOf = (number: number): string => number.toString(16).padStart(16, "0");

/** Makes a dead letter of the one timer of a kind: its attempts are used up. */
function bury(kind: number): void {
  const lane = kind.toString(16).padStart(2, "0");
  const [timer, ...others] = object.sql<{ key: string; value: string; part: number }>(
    "SELECT part, lower(hex(key)) AS key, lower(hex(value)) AS value FROM dueline_kv WHERE lower(hex(key)) LIKE ?",
    `7700${lane}%`,
  );
  assert.ok(timer !== undefined && others.length === 0, "one timer");
  const { key, value, part } = timer;
  const [generation, reference] = [key.slice(22, 38), key.slice(38)];
  const [header, payload] = [value.slice(0, 24), value.slice(24)];
  const deadAt = hexOf(Date.now());
  const replace = "INSERT OR REPLACE INTO dueline_kv (part, key, value) VALUES (?, unhex(?), unhex(?))";
  object.sql("DELETE FROM dueline_kv WHERE lower(hex(key)) = ?", key);
  object.sql(replace, part, `6400${lane}${deadAt}${generation}${reference}`, `${header}010000${payload}`);
  if ((parseInt(header.slice(2, 4), 16) & 1) === 1) {
    object.sql(replace, part, `6e00${lane}${reference}`, `04${deadAt}${generation}`);
  }
}

interface Case {
  readonly number: number;
  readonly begin: (shop: Shop) => Promise<unknown>;
  /** Until when it would have ended. */
  readonly after: number;
  readonly hasEnded: (shop: Shop) => Promise<boolean>;
}

const CASES: Readonly<Record<BuiltInKind, Case>> = {
  $lease_sweep: {
    number: 1,
    begin: ({ verbs }) => verbs.leases.grant("printer", { owner: "ada", term: MINUTE_MS }),
    after: MINUTE_MS,
    hasEnded: async ({ verbs }) => (await verbs.leases.get("printer")).outcome === "vacant",
  },
  $ticket_expiry: {
    number: 2,
    begin: ({ verbs }) => verbs.tickets.open({ resource: "seat", ttl: MINUTE_MS }),
    after: MINUTE_MS,
    hasEnded: async ({ verbs }) => (await verbs.tickets.openCount({ resource: "seat" })) === 0,
  },
  $quota_rollup: {
    number: 5,
    begin: ({ verbs }) => verbs.quotas.charge("api", [1]),
    after: QUOTA_MS,
    hasEnded: async ({ verbs }) => (await verbs.quotas.total("api", Date.parse("2030-06-01T20:00:00Z"))) === undefined,
  },
  $outcome_delivery: {
    number: 8,
    begin: ({ verbs }) => verbs.outboxes.append("mail", [{ id: "1" }]),
    after: MINUTE_MS,
    hasEnded: async ({ verbs, arrived }) => arrived.includes("1") && (await verbs.outboxes.backlog("mail")).count === 0,
  },
  $reservation_reconcile: {
    number: 9,
    begin: ({ verbs }) => verbs.reservations.reserve("seat", { commitWithin: MINUTE_MS, skew: 0 }),
    after: MINUTE_MS,
    hasEnded: async ({ verbs }) => (await verbs.reservations.get("seat"))?.state === "abandoned",
  },
  $publication_recheck: {
    number: 12,
    begin: ({ verbs }) => verbs.gated.add("post", [{ place: "images", key: "a" }]),
    after: MINUTE_MS,
    hasEnded: async ({ verbs, arrived }) => arrived.includes("post") && (await verbs.gated.get("post")) === undefined,
  },
};

describe("a dead letter of", () => {
  for (const [name, { number, begin, after, hasEnded }] of Object.entries(CASES)) {
    const kind = name as BuiltInKind;
    for (const how of ["one", "all"]) {
      it(`${kind} is listed, and goes on once ${how === "one" ? "it is" : "all of its kind are"} requeued`, async () => {
        const shop = object.instance;
        await begin(shop);
        bury(number);
        await clock.advance(after);
        assert.equal(await hasEnded(shop), false);
        const [letter, ...others] = (await shop.dead.list({ kind })).items;
        assert.deepEqual([letter?.kind, letter?.reason, letter?.payload, others], [kind, "exhausted", undefined, []]);
        assert.deepEqual((await shop.dead.list()).items, [letter]);
        assert.deepEqual((await shop.dead.list({ kind: "note" })).items, []);
        assert.deepEqual((await shop.verbs.counts()).map((of) => [of.kind, of.dead]), [[kind, 1]]);

        if (how === "one") {
          assert.notEqual(await shop.dead.requeue(letter?.id ?? ""), undefined);
        } else {
          assert.equal(await shop.dead.requeueAll("note"), 0);
          assert.equal(await shop.dead.requeueAll(kind), 1);
        }
        await clock.advance(1_000);
        assert.equal(await hasEnded(shop), true);
        assert.deepEqual((await shop.dead.list({ kind })).items, []);
      });
    }

    it(`${kind} can be thrown away`, async () => {
      const shop = object.instance;
      await begin(shop);
      bury(number);
      const [letter] = (await shop.dead.list({ kind })).items;
      assert.equal(await shop.dead.purge(letter?.id ?? ""), true);
      assert.deepEqual((await shop.dead.list()).items, []);
    });
  }
});

it("what a built-in kind is called is known whether the object has it or not, and nothing else is", async () => {
  const { dead } = object.instance;
  await assert.rejects(dead.list({ kind: "$nothing" as BuiltInKind }), { code: "unknown_kind" });
  assert.equal(await object.instance.pause("$ticket_expiry"), true);
  assert.deepEqual(await object.instance.verbs.paused(), ["$ticket_expiry"]);
  assert.equal(await object.instance.resume("$ticket_expiry"), true);
});
