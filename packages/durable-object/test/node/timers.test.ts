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
    assert.equal(await object.call("alarm"), dueAt);
    const [effect] = await effects(object, 1);
    assert.equal(effect?.text, "hello");
    assert.equal(effect?.due, dueAt);
    assert.ok(effect !== undefined && effect.at >= dueAt, `fired ${effect?.at} before ${dueAt}`);
    assert.equal(await object.call("get", "write", "one"), null);
    assert.equal(await object.call("alarm"), null);
  });
});

void refused;
