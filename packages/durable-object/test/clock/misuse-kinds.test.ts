// Goal: whatever a caller hands to a verb of a built-in kind is an error of that call and never breaks the engine.
// Method: each argument of each verb in every wrong form; what was said of each, and that nothing trapped.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { Timers } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";
import { ErrorsTold } from "./errors-told.js";

class Room extends DurableObject {
  readonly timers = new Timers(this.ctx, {
    handlers: {},
    builtIns: {
      leases: {},
      reservations: {},
      quotas: { calls: { window: 60_000 } },
      outboxes: { mail: () => undefined },
      gated: { look: ({ keys }) => keys.map(() => false), release: () => undefined },
      tickets: {},
    },
  });
  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }
}

/** Wrong for every argument, whatever it is. */
const NEVER: Record<string, () => unknown> = {
  symbol: () => Symbol.iterator,
  bigint: () => 1n,
  null: () => null,
  half: () => "\ud800",
  infinite: () => -Infinity,
  huge: () => 1e300,
  negative: () => -1,
  NaN: () => Number.NaN,
  emptyText: () => "",
};
/** Wrong for some, and strange for all. */
const STRANGE: Record<string, () => unknown> = {
  undefined: () => undefined,
  five: () => 5,
  fraction: () => 1.5,
  negativeZero: () => -0,
  big: () => 2 ** 53,
  object: () => ({}),
  bare: () => Object.create(null) as object,
  bareInList: () => [Object.create(null) as object],
  nullInList: () => [null],
  holes: () => new Array(3),
  function: () => () => 1,
  async: () => async () => 1,
  generator: () => function* () {},
  date: () => new Date(Number.NaN),
  cycle: () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    return cycle;
  },
  throws: () =>
    new Proxy(
      {},
      {
        get: () => {
          throw new Error("a getter of the caller's");
        },
      },
    ),
  zeroByte: () => "\0",
  longest: () => "\u{1f600}".repeat(64),
  tooLong: () => "\u{1f600}".repeat(300),
};

type Verb = (timers: Timers, wrong: never) => Promise<unknown>;
const ID = "0".repeat(32);
const effects = (): void => undefined;

const VERBS: Record<string, Verb> = {
  "grant: name": ({ leases }, name) => leases.grant(name, { owner: "ann", term: 1_000 }),
  "grant: options": ({ leases }, options) => leases.grant("a", options),
  "grant: owner": ({ leases }, owner) => leases.grant("a", { owner, term: 1_000 }),
  "grant: term": ({ leases }, term) => leases.grant("a", { owner: "ann", term }),
  "grant: effects": ({ leases }, effects) => leases.grant("b", { owner: "ann", term: 1_000, effects }),
  "renew: options": ({ leases }, options) => leases.renew("a", options),
  "renew: epoch": ({ leases }, epoch) => leases.renew("a", { epoch, term: 1 }),
  "renew: term": ({ leases }, term) => leases.renew("a", { epoch: 1, term }),
  "release: options": ({ leases }, options) => leases.release("a", options),
  "release: epoch": ({ leases }, epoch) => leases.release("a", { epoch }),
  "fenced: options": ({ leases }, options) => leases.fenced("a", options, effects),
  "fenced: until": ({ leases }, until) => leases.fenced("a", { epoch: 1, until }, effects),
  "fenced: effects": ({ leases }, effects) => leases.fenced("a", { epoch: 1 }, effects),
  "lease: name": ({ leases }, name) => leases.get(name),
  "forget: name": ({ leases }, name) => leases.forget(name),
  "open: request": ({ tickets }, request) => tickets.open(request),
  "open: resource": ({ tickets }, resource) => tickets.open({ resource, ttl: 1 }),
  "open: ttl": ({ tickets }, ttl) => tickets.open({ resource: "r", ttl }),
  "open: actor": ({ tickets }, actor) => tickets.open({ resource: "r", ttl: 1, actor }),
  "open: key": ({ tickets }, key) => tickets.open({ resource: "r", ttl: 1, key }),
  "open: session": ({ tickets }, session) => tickets.open({ resource: "r", ttl: 1, session }),
  "open: resourceMax": ({ tickets }, resourceMax) => tickets.open({ resource: "r", ttl: 1, resourceMax }),
  "open: actorMax": ({ tickets }, actorMax) => tickets.open({ resource: "r", ttl: 1, actor: "a", actorMax }),
  "open: effects": ({ tickets }, effects) => tickets.open({ resource: "r", ttl: 1, effects }),
  "consume: id": ({ tickets }, id) => tickets.consume(id),
  "consume: options": ({ tickets }, options) => tickets.consume(ID, options),
  "consume: effects": ({ tickets }, effects) => tickets.consume(ID, { effects }),
  "release: id": ({ tickets }, id) => tickets.release(id),
  "cancel: options": ({ tickets }, options) => tickets.cancel(ID, options),
  "extend: ttl": ({ tickets }, ttl) => tickets.extend(ID, ttl),
  "discard: options": ({ tickets }, options) => tickets.discard(ID, options),
  "retry: id": ({ tickets }, id) => tickets.retry(id),
  "find: key": ({ tickets }, key) => tickets.find(key),
  "openCount: of": ({ tickets }, of) => tickets.openCount(of),
  "openCount: resource": ({ tickets }, resource) => tickets.openCount({ resource }),
  "recount: actor": ({ tickets }, actor) => tickets.recount({ actor }),
  "tickets: place": ({ tickets }, place) => tickets.list(place),
  "tickets: after": ({ tickets }, after) => tickets.list({ after }),
  "tickets: limit": ({ tickets }, limit) => tickets.list({ limit }),
  "setAside: after": ({ tickets }, after) => tickets.setAside({ after }),
  "reserve: id": ({ reservations }, id) => reservations.reserve(id, { commitWithin: 1 }),
  "reserve: terms": ({ reservations }, terms) => reservations.reserve("a", terms),
  "reserve: commitWithin": ({ reservations }, commitWithin) => reservations.reserve("a", { commitWithin }),
  "reserve: skew": ({ reservations }, skew) => reservations.reserve("b", { commitWithin: 1, skew }),
  "reserve: keepFor": ({ reservations }, keepFor) => reservations.reserve("c", { commitWithin: 1, keepFor }),
  "reserve: outbox": ({ reservations }, outbox) => reservations.reserve("d", { commitWithin: 1, outbox }),
  "reserve: effects": ({ reservations }, effects) => reservations.reserve("e", { commitWithin: 1, effects }),
  "commit: options": ({ reservations }, options) => reservations.commit("a", options),
  "commit: serial": ({ reservations }, serial) => reservations.commit("a", { serial }),
  "abort: reason": ({ reservations }, reason) => reservations.abort("a", { serial: "1", reason: [reason] as never }),
  "extend: commitWithin": ({ reservations }, commitWithin) =>
    reservations.extend("a", { serial: "1", detail: 1, commitWithin }),
  "forget: options": ({ reservations }, options) => reservations.forget("a", options),
  "reservation: id": ({ reservations }, id) => reservations.get(id),
  "charge: name": ({ quotas }, name) => quotas.charge(name, [1]),
  "charge: amounts": ({ quotas }, amounts) => quotas.charge("calls", amounts),
  "charge: amount": ({ quotas }, amount) => quotas.charge("calls", [amount]),
  "charge: options": ({ quotas }, options) => quotas.charge("calls", [1], options),
  "charge: limits": ({ quotas }, limits) => quotas.charge("calls", [1], { limits }),
  "charge: limit": ({ quotas }, limit) => quotas.charge("calls", [1], { limits: [limit] }),
  "charge: effects": ({ quotas }, effects) => quotas.charge("calls", [1], { effects }),
  "usage: name": ({ quotas }, name) => quotas.usage(name),
  "total: at": ({ quotas }, at) => quotas.total("calls", at),
  "append: outbox": ({ outboxes }, outbox) => outboxes.append(outbox, [{ id: "a" }]),
  "append: outcomes": ({ outboxes }, outcomes) => outboxes.append("mail", outcomes),
  "append: outcome": ({ outboxes }, outcome) => outboxes.append("mail", [outcome]),
  "append: id": ({ outboxes }, id) => outboxes.append("mail", [{ id }]),
  "append: options": ({ outboxes }, options) => outboxes.append("mail", [{ id: "a" }], options),
  "append: effects": ({ outboxes }, effects) => outboxes.append("mail", [{ id: "a" }], { effects }),
  "wake: outbox": ({ outboxes }, outbox) => outboxes.wake(outbox),
  "backlog: outbox": ({ outboxes }, outbox) => outboxes.backlog(outbox),
  "waiting: options": ({ outboxes }, options) => outboxes.waiting("mail", options),
  "waiting: after": ({ outboxes }, after) => outboxes.waiting("mail", { after }),
  "dead: limit": ({ outboxes }, limit) => outboxes.dead("mail", { limit }),
  "requeue: sequence": ({ outboxes }, sequence) => outboxes.requeue("mail", sequence),
  "purge: options": ({ outboxes }, options) => outboxes.purge("mail", 1, options),
  "setAside: sequence": ({ outboxes }, sequence) => outboxes.setAside("mail", sequence, "why"),
  "setAside: why": ({ outboxes }, why) => outboxes.setAside("mail", 1, [why] as never),
  "add: record": ({ gated }, record) => gated.add(record, []),
  "add: dependencies": ({ gated }, waitsFor) => gated.add("r", waitsFor),
  "add: dependency": ({ gated }, dependency) => gated.add("r", [dependency]),
  "add: place": ({ gated }, place) => gated.add("r", [{ place, key: "k" }]),
  "add: key": ({ gated }, key) => gated.add("r", [{ place: "p", key }]),
  "add: options": ({ gated }, options) => gated.add("r", [], options),
  "remove: record": ({ gated }, record) => gated.remove(record),
  "lookNow: record": ({ gated }, record) => gated.lookNow(record),
  "gated: record": ({ gated }, record) => gated.get(record),
};

const REFUSALS = ["invalid", "due_out_of_range", "effects_async", "unknown_kind"];

let errors: ErrorsTold;
let clock: TestClock;
let room: TestObject<Room>;

beforeEach(async () => {
  errors = new ErrorsTold();
  clock = TestClock.install();
  room = await TestObject.open(clock, Room);
});
afterEach(() => {
  clock.uninstall();
  errors.end();
});

/** The code of what a verb threw; `done` if it threw nothing, `getter` if it was the caller's own. */
async function said(verb: Verb, wrong: unknown): Promise<string> {
  try {
    await verb(room.instance.timers, wrong as never);
    return "done";
  } catch (thrown) {
    const { code, message } = thrown as { code?: string; message: string };
    return code ?? (message === "a getter of the caller's" ? "getter" : message);
  }
}

for (const [what, verb] of Object.entries(VERBS)) {
  it(`whatever is given as ${what} breaks nothing`, async () => {
    for (const [name, make] of Object.entries(NEVER)) {
      assert.ok(REFUSALS.includes(await said(verb, make())), `${name}: ${await said(verb, make())}`);
    }
    for (const [name, make] of Object.entries(STRANGE)) {
      const code = await said(verb, make());
      assert.ok([...REFUSALS, "done", "getter"].includes(code), `${name}: ${code}`);
    }
    assert.deepEqual(errors.told, []);
    const { leases, gated } = room.instance.timers;
    assert.equal((await leases.grant("sound", { owner: "ann", term: 1_000 })).outcome, "granted");
    // What was taken is shown as it was given.
    for (const { place, key } of (await gated.get("r")) ?? []) {
      assert.ok(typeof place === "string" && typeof key === "string");
    }
  });
}

it("what has no JSON form is no data, detail or payload", async () => {
  const { tickets, reservations, outboxes } = room.instance.timers;
  for (const name of ["function", "cycle", "throws"]) {
    const wrong = STRANGE[name]?.();
    for (const call of [
      tickets.open({ resource: "r", ttl: 1_000, data: wrong }),
      reservations.reserve("a", { commitWithin: 1_000, detail: wrong }),
      outboxes.append("mail", [{ id: "a", payload: wrong }]),
    ]) {
      await assert.rejects(call, (thrown) => (thrown as { code?: string }).code === "payload_not_serializable", name);
    }
  }
  assert.deepEqual(errors.told, []);
});
