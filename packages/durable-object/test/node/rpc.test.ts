// Goal: whatever callers over RPC hand over is an error of their call, and the engine goes on for all. Method: a real
// workerd, whose RPC makes stubs of functions and copies of the rest.
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Grant } from "@dueline/durable-object/kinds";
import { Workerd } from "./workerd.js";

it("what callers over RPC hand over breaks nothing", async (t) => {
  const workerd = await Workerd.start({ entry: "rpc.js", classes: ["Room"] });
  t.after(() => workerd.stop());
  const { said, sound } = await workerd
    .object("Room", "room")
    .call<{ readonly said: Record<string, string>; readonly sound: Grant }>("all");
  for (const [call, message] of Object.entries(said)) {
    assert.match(
      message,
      /^done$|^(DuelineError: )?(invalid|due_out_of_range|effects_async|payload_not_serializable): /,
      `${call}: ${message}`,
    );
  }
  for (const wrong of ["a function", "an async function"]) {
    assert.match(said[`the effects of a grant: ${wrong}`] ?? "", /effects_async/);
  }
  assert.match(said["outcomes: a list with a hole"] ?? "", /invalid/);
  assert.equal(sound.lease.name, "sound");
  assert.doesNotMatch(workerd.log, /crashed|unreachable|out of bounds/);
});
