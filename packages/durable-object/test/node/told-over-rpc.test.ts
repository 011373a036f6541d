// Goal: a due timer that is told to another object over RPC keeps what it is known by, what the other answers is waited
// for, and an error that came over RPC
// is told by its code. Method: a real workerd, before and behind the compatibility date from which on it keeps the
// properties of an error.
import assert from "node:assert/strict";
import { it } from "node:test";
import { until, Workerd } from "./workerd.js";

for (const [compatibilityDate, name] of [["2026-10-01", "DuelineError"], ["2024-10-01", "Error"]] as const) {
  it(`what goes over RPC by the platform of ${compatibilityDate}`, async (t) => {
    const workerd = await Workerd.start({ entry: "told-over-rpc.js", classes: ["Sender", "Receiver"], compatibilityDate });
    t.after(() => workerd.stop());
    const worker = workerd.object("", "");
    assert.deepEqual(await worker.call("refused"), { name, code: "not_found", isOurs: false });

    await worker.call("note");
    await until(() => worker.call<number[]>("noted"), (noted) => noted.join() === "-1,1");

    await worker.call("schedule");
    const ask = (): Promise<{ taken: string; id: string }[]> => worker.call("told");
    const [told] = await until(ask, (found) => found.length > 0);
    const taken = JSON.parse(told?.taken ?? "") as Record<string, unknown>;
    assert.match(told?.id ?? "", /^[0-9a-f]{64}\/\d+\/ada%3A%201\/\d+$/);
    assert.deepEqual(
      [taken["kind"], taken["name"], taken["payload"], taken["occurrenceId"]],
      ["tell", "ada: 1", { text: "hi" }, told?.id],
    );
  });
}
