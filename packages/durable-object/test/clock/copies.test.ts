// Goal: what a handler is told can be copied, and a copy keeps everything but the signal; an error is known by its code
// whatever became of it on the way. Method: copies of every kind, of each thing with a signal.
import assert from "node:assert/strict";
import { it } from "node:test";
import { codeOf, DuelineError, TimerObject, type BuiltIns, type Handlers } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

const COPIES: Record<string, (of: object) => Record<string, unknown>> = {
  "by its parts": (of) => ({ ...of }),
  "as JSON": (of) => JSON.parse(JSON.stringify(of)) as Record<string, unknown>,
  "by structuredClone": (of) => structuredClone(of) as Record<string, unknown>,
};

let told: Record<string, { readonly signal: AbortSignal }> = {};

class Room extends TimerObject<{ tick: { text: string } }> {
  protected override handlers(): Handlers<{ tick: { text: string } }> {
    return { tick: (timer) => void (told[timer.name === undefined ? "nameless" : "named"] = timer) };
  }
  protected override builtIns(): BuiltIns {
    return {
      outboxes: { mail: (delivery) => void (told["delivery"] = delivery) },
      gated: {
        look: (look) => {
          told["look"] = look;
          return look.keys.map(() => true);
        },
        release: () => undefined,
      },
      tickets: { abort: (ticket) => void (told["ticket"] = ticket) },
    };
  }
  get open() {
    return this.timers;
  }
}

const EXPECTED: Record<string, readonly string[]> = {
  named: ["kind", "name", "payload", "dueAt", "now", "attempt", "generation", "occurrenceId"],
  nameless: ["kind", "payload", "dueAt", "now", "attempt", "generation", "occurrenceId"],
  delivery: ["outbox", "sequence", "id", "payload", "writtenAt", "attempt"],
  look: ["place", "keys"],
  ticket: ["id", "resource", "session", "openedAt", "expiresAt"],
};

it("a copy of what a function is told has all but the signal", async () => {
  told = {};
  const clock = TestClock.install();
  const { open } = (await TestObject.open(clock, Room)).instance;
  await open.schedule("tick", { name: "a/b c", after: 1, payload: { text: "hi" } });
  await open.schedule("tick", { after: 1, payload: { text: "hi" } });
  await open.outboxes.append("mail", [{ id: "m", payload: [1] }]);
  await open.gated.add("page", [{ place: "p", key: "k" }]);
  await open.tickets.open({ resource: "hall", ttl: 1_000, session: "s" });
  await clock.advance(60_000);
  clock.uninstall();
  for (const [what, keys] of Object.entries(EXPECTED)) {
    const of = told[what];
    assert.ok(of !== undefined, what);
    assert.equal(of.signal.aborted, false);
    assert.equal(of.signal, of.signal);
    for (const [how, copy] of Object.entries(COPIES)) {
      const copied = copy(of);
      assert.deepEqual(keys.filter((key) => copied[key] === undefined), [], `${what} ${how}`);
      assert.equal("signal" in copied, false);
    }
  }
  const { occurrenceId, generation } = told["named"] as unknown as Record<string, string>;
  assert.match(occurrenceId ?? "", new RegExp(`^[0-9a-f]{64}/\\d+/a%2Fb%20c/${generation}$`));
});

it("an error is known by its code", () => {
  const error = new DuelineError("not_found", "no timer");
  const remote = Object.assign(new Error("not_found: no timer"), { name: "DuelineError" });
  const bare = new Error("DuelineError: not_found: no timer");
  assert.deepEqual([error, remote, bare, { ...remote, name: "DuelineError", message: error.message }].map(codeOf), Array(4).fill("not_found"));
  const others = [new Error("not_found: a file"), new Error("DuelineError: toString: x"), "not_found: x", null, undefined, 5, Symbol("x")];
  assert.deepEqual(others.map(codeOf), Array(7).fill(undefined));
});
