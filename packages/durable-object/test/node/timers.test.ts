// The verbs and the fires of one object, in a real workerd.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Answered, Workerd, until, type ObjectClient } from "./workerd.js";

interface Effect {
  readonly text: string;
  readonly at: number;
  readonly due: number;
  readonly attempt: number;
}

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "worker.js", classes: ["Everything"] });
});
after(() => workerd.stop());

let last = 0;
function fresh(): ObjectClient {
  last += 1;
  return workerd.object("Everything", `object-${last}`);
}

const effects = (object: ObjectClient, count: number): Promise<Effect[]> =>
  until(() => object.call<Effect[]>("effects"), (found) => found.length >= count);

async function refused(code: string, call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    (value) => assert.fail(`not refused: ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Answered, String(error));
  assert.equal(error.code, code, error.message);
  return error.message;
}

describe("scheduling", () => {
  it("fires a named timer at its due, with effects in the object's own tables", async () => {
    const object = fresh();
    const dueAt = Date.now() + 150;
    const scheduled = await object.call<{ outcome: string; dueAt: number }>("schedule", "write", {
      name: "one",
      dueAt,
      payload: { text: "hello" },
    });
    assert.deepEqual([scheduled.outcome, scheduled.dueAt], ["created", dueAt]);
    const [effect] = await effects(object, 1);
    assert.equal(effect?.text, "hello");
    assert.equal(effect?.due, dueAt);
    assert.ok(effect !== undefined && effect.at >= dueAt, `fired ${effect?.at} before ${dueAt}`);
    assert.equal(await object.call("get", "write", "one"), null);
    await until(() => object.call("alarm"), (alarm) => alarm === null);
  });

  it("fires anonymous timers, each once, in the order of their dues", async () => {
    const object = fresh();
    const now = Date.now();
    for (const offset of [1_200, 1_000, 1_100]) {
      await object.call("schedule", "write", { dueAt: now + offset, payload: { text: String(offset) } });
    }
    const found = await effects(object, 3);
    assert.deepEqual(found.map(({ text }) => text), ["1000", "1100", "1200"]);
  });

  it("replaces, keeps the earliest, or leaves what a name has", async () => {
    const object = fresh();
    const at = Date.now() + 60_000;
    const put = (dueAt: number, more: object) =>
      object.call<{ outcome: string; dueAt: number; generation: string }>("schedule", "write", {
        name: "n",
        dueAt,
        payload: { text: "x" },
        ...more,
      });
    const first = await put(at, {});
    const second = await put(at + 10, {});
    assert.deepEqual([first.outcome, second.outcome], ["created", "replaced"]);
    assert.notEqual(first.generation, second.generation);
    assert.equal((await put(at + 20, { policy: "keepEarliest" })).dueAt, at + 10);
    assert.equal((await put(at - 20, { policy: "keepEarliest" })).dueAt, at - 20);
    const kept = await put(at, { policy: "ifAbsent" });
    assert.deepEqual([kept.outcome, kept.dueAt], ["kept", at - 20]);
    await refused("generation_mismatch", put(at, { ifMatch: first.generation }));
    assert.equal((await put(at, { ifMatch: kept.generation })).outcome, "replaced");
  });

  it("reads, lists, moves and cancels by name", async () => {
    const object = fresh();
    const at = Date.now() + 60_000;
    for (const name of ["b/1", "a/1", "a/2"]) {
      await object.call("schedule", "write", { name, dueAt: at, payload: { text: name } });
    }
    type View = { name: string; dueAt: number; state: string; payload: unknown; kind: string; generation: string };
    const view = await object.call<View>("get", "write", "a/1");
    assert.deepEqual([view.kind, view.name, view.dueAt, view.state, view.payload], ["write", "a/1", at, "pending", { text: "a/1" }]);
    const page = await object.call<{ items: View[]; next?: string }>("list", "write", { prefix: "a/", limit: 1 });
    assert.deepEqual(page.items.map(({ name }) => name), ["a/1"]);
    const rest = await object.call<{ items: View[] }>("list", "write", { prefix: "a/", after: page.next });
    assert.deepEqual(rest.items.map(({ name }) => name), ["a/2"]);
    const moved = await object.call<{ dueAt: number }>("reschedule", "write", "a/1", { dueAt: at - 1_000 });
    assert.equal(moved.dueAt, at - 1_000);
    assert.equal(await object.call("alarm"), at - 1_000);
    assert.equal((await object.call<{ state: string }>("cancel", "write", "a/1")).state, "pending");
    assert.equal(await object.call("cancel", "write", "a/1"), null);
    await refused("not_found", object.call("reschedule", "write", "a/1", { after: 0 }));
    await refused("generation_mismatch", object.call("cancel", "write", "a/2", { ifMatch: "1" }));
  });

  it("carries names and payloads of every script, and bytes", async () => {
    const object = fresh();
    const name = "\u05e9\u05dc\u05d5\u05dd/%2F \u{1f600}".repeat(10);
    await object.call("schedule", "write", { name, after: 60_000, payload: { text: name } });
    const view = await object.call<{ name: string; payload: { text: string } }>("get", "write", name);
    assert.deepEqual([view.name, view.payload.text], [name, name]);
    await object.call("scheduleBytes", 0, 1, 254, 255);
    assert.equal((await effects(object, 1))[0]?.text, "bytes 0,1,254,255");
  });

  it("takes a due of the year 9999 and one in the past", async () => {
    const object = fresh();
    const last = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
    await object.call("schedule", "write", { name: "far", dueAt: last, payload: { text: "far" } });
    assert.equal((await object.call<{ dueAt: number }>("get", "write", "far")).dueAt, last);
    await object.call("schedule", "write", { dueAt: 1_000, payload: { text: "past" } });
    assert.equal((await effects(object, 1))[0]?.due, 1_000);
    assert.equal(await object.call("get", "write", "far").then((view) => (view as { state: string }).state), "pending");
  });
});

describe("handlers", () => {
  it("retries a run that throws, then keeps it among the dead letters until it is requeued", async () => {
    const object = fresh();
    await object.call("schedule", "fail", { name: "soon", after: 0, payload: { times: 2 } });
    assert.equal((await effects(object, 1))[0]?.attempt, 3);
    await object.call("schedule", "fail", { name: "never", after: 0, payload: { times: 3 } });
    type Dead = { id: string; kind: string; name: string; reason: string; attempt: number; lastError: string };
    const { items } = await until(
      () => object.call<{ items: Dead[] }>("dead"),
      (page) => page.items.length === 1,
    );
    const [dead] = items;
    assert.deepEqual(
      [dead?.kind, dead?.name, dead?.reason, dead?.attempt, dead?.lastError],
      ["fail", "never", "exhausted", 3, "failed run 3"],
    );
    assert.equal(await object.call("requeueAll", "fail"), 1);
    const again = await until(
      () => object.call<{ items: Dead[] }>("dead", { kind: "fail" }),
      (page) => page.items.length === 1,
    );
    assert.equal(await object.call("purge", again.items[0]?.id), true);
    assert.equal(await object.call("purge", again.items[0]?.id), false);
    assert.equal(await object.call("get", "fail", "never"), null);
  });

  it("rolls effects that throw back and charges an attempt", async () => {
    const object = fresh();
    await object.call("schedule", "throwInEffects", { after: 0, payload: { text: "x" } });
    const found = await effects(object, 1);
    assert.deepEqual(found.map(({ text, attempt }) => [text, attempt]), [["x", 3]]);
    const { kv } = await object.call<{ kv: number }>("rows");
    await until(() => object.call("alarm"), (alarm) => alarm === null);
    // Nothing but the names of the kinds is left.
    assert.equal(kv, Object.keys(KINDS).length + 1);
  });

  it("refuses effects that return a promise", async () => {
    const object = fresh();
    await object.call("schedule", "asyncEffects", { after: 0 });
    const page = await until(
      () => object.call<{ items: { lastError: string }[] }>("dead"),
      ({ items }) => items.length === 1,
    );
    assert.match(page.items[0]?.lastError ?? "", /^effects_async: the effects of `asyncEffects` returned a promise/);
    assert.deepEqual(await object.call("effects"), []);
  });

  it("refuses a verb that effects call", async () => {
    const object = fresh();
    await object.call("schedule", "scheduleInEffects", { after: 0 });
    const [effect] = await effects(object, 1);
    assert.match(effect?.text ?? "", /^in_effects: /);
  });

  it("schedules again from the due, with a new payload", async () => {
    const object = fresh();
    const dueAt = Date.now() + 20;
    await object.call("schedule", "again", { name: "r", dueAt, payload: { left: 3 } });
    const found = await effects(object, 4);
    assert.deepEqual(found.map(({ text, due }) => [text, due - dueAt]), [["left 3", 0], ["left 2", 10], ["left 1", 20], ["left 0", 30]]);
    assert.equal(await object.call("get", "again", "r"), null);
  });

  it("gives up at a word, and schedules others in its commit", async () => {
    const object = fresh();
    await object.call("schedule", "giveUp", { after: 0 });
    await object.call("schedule", "chain", { after: 0, payload: { left: 2 } });
    const found = await effects(object, 4);
    assert.deepEqual(found.map(({ text }) => text).sort(), ["chain 0", "chain 1", "chain 2", "given up"]);
    const page = await object.call<{ items: { reason: string; lastError: string }[] }>("dead", { kind: "giveUp" });
    assert.deepEqual(page.items.map(({ reason, lastError }) => [reason, lastError]), [["handler", "nobody wants it"]]);
  });

  it("waits for an asynchronous handler while requests are answered", async () => {
    const object = fresh();
    await object.call("schedule", "slow", { after: 0, payload: { ms: 2_000 } });
    await until(() => object.call("alarm"), (alarm) => alarm === null);
    const begun = Date.now();
    await object.call("schedule", "write", { name: "meanwhile", after: 60_000, payload: { text: "" } });
    assert.ok(Date.now() - begun < 1_500, "a request waited for the handler");
    assert.equal((await effects(object, 1))[0]?.text, "slow");
  });

  it("runs detached calls side by side, settles them, and retries those that fail", async () => {
    const object = fresh();
    const begun = Date.now();
    for (let index = 0; index < 8; index += 1) {
      await object.call("schedule", "call", { name: `c${index}`, after: 0, payload: { ms: 1_000 } });
    }
    const found = await effects(object, 8);
    const took = Date.now() - begun;
    assert.ok(took < 8 * 1_000, `one after another: ${took} ms`);
    assert.equal(new Set(found.map(({ text }) => text)).size, 8);
    await object.call("schedule", "call", { name: "down", after: 0, payload: { ms: 1, fail: true } });
    const page = await until(
      () => object.call<{ items: { lastError: string; attempt: number }[] }>("dead", { kind: "call" }),
      ({ items }) => items.length === 1,
    );
    assert.deepEqual(page.items.map(({ lastError, attempt }) => [lastError, attempt]), [["the receiver is down", 2]]);
  });

  it("lets a paused kind wait, and no other", async () => {
    const object = fresh();
    assert.equal(await object.call("pause", "write", { wait: true }), true);
    await object.call("schedule", "write", { after: 0, payload: { text: "paused" } });
    await object.call("schedule", "again", { after: 50, payload: { left: 0 } });
    assert.deepEqual((await effects(object, 1)).map(({ text }) => text), ["left 0"]);
    assert.deepEqual(await object.call("paused"), ["write"]);
    assert.equal(await object.call("resume", "write"), true);
    assert.equal((await effects(object, 2))[1]?.text, "paused");
  });
});

describe("misuse", () => {
  const far = { name: "n", after: 60_000, payload: { text: "" } };
  const cases: [string, string, string, unknown][] = [
    ["an unknown kind", "unknown_kind", "nobody", far],
    ["no time", "invalid", "write", { payload: { text: "" } }],
    ["two times", "invalid", "write", { ...far, dueAt: 1 }],
    ["a due behind the year 9999", "due_out_of_range", "write", { dueAt: 253_402_300_800_000, payload: 1 }],
    ["a due that is no number", "due_out_of_range", "write", { dueAt: "soon", payload: 1 }],
    ["a negative span", "due_out_of_range", "write", { after: -1, payload: 1 }],
    ["a payload that is too large", "payload_too_large", "write", { after: 0, payload: "x".repeat(480 * 1024) }],
    ["an empty name", "invalid", "write", { ...far, name: "" }],
    ["a name that is too long", "invalid", "write", { ...far, name: "n".repeat(513) }],
    ["a policy without a name", "invalid", "write", { after: 0, policy: "ifAbsent", payload: 1 }],
    ["an unknown policy", "invalid", "write", { ...far, policy: "never" }],
    ["a generation that is none", "invalid", "write", { ...far, ifMatch: "x" }],
  ];
  for (const [what, code, kind, timer] of cases) {
    it(`refuses ${what} as ${code}`, async () => {
      const object = fresh();
      const message = await refused(code, object.call("schedule", kind, timer));
      assert.ok(message.startsWith(`${code}: `), message);
      assert.deepEqual(await object.call("effects"), []);
    });
  }

  it("refuses ids and limits that are none", async () => {
    const object = fresh();
    await refused("invalid", object.call("requeue", "zz"));
    await refused("invalid", object.call("list", "write", { limit: 0 }));
    await refused("invalid", object.call("list", "write", { states: ["asleep"] }));
    await refused("unknown_kind", object.call("get", "nobody", "n"));
  });
});

/** The kinds of the object under test; each has a row with its number, and one row has the next. */
const KINDS = { write: 1, slow: 1, fail: 1, throwInEffects: 1, asyncEffects: 1, scheduleInEffects: 1, again: 1, giveUp: 1, chain: 1, call: 1, bytes: 1 };
