// Goal: the examples do what they say, as they are deployed. Method: each in a real workerd by the config that
// lies beside it, asked over HTTP; the webhook of the reminders is a server of the test's.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, it } from "node:test";
import { until, Workerd } from "./workerd.js";

interface Call {
  readonly key: string | undefined;
  readonly body: unknown;
}

describe("the example", () => {
  it("of held seats holds, refuses and sells, and goes on behind a crash", async (t) => {
    const workerd = await Workerd.start({ file: "examples/seat-hold/workerd.capnp" });
    t.after(() => workerd.stop());
    const post = (path: string) => fetch(`${workerd.url}/concert/${path}`, { method: "POST" });

    const held = await post("A1/hold?holder=ada");
    const { until: end } = (await held.json()) as { until: number };
    assert.ok(end > Date.now() + 590_000 && end <= Date.now() + 600_000, `held until ${end}`);
    assert.equal((await post("A1/hold?holder=bob")).status, 409);
    assert.equal((await post("A1/confirm?holder=bob")).status, 409);
    await workerd.kill();
    await workerd.start();
    assert.equal((await post("A1/hold?holder=bob")).status, 409);
    assert.equal((await post("A1/confirm?holder=ada")).status, 200);
    const seats = await fetch(`${workerd.url}/concert`);
    assert.deepEqual(await seats.json(), [{ seat: "A1", holder: "ada", state: "sold" }]);
  });

  it("of reminders calls the webhook again until it is taken, once and again and again", async (t) => {
    const calls: Call[] = [];
    const webhook = createServer((request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (part: string) => (text += part));
      request.on("end", () => {
        const key = request.headers["idempotency-key"];
        calls.push({ key: String(key), body: JSON.parse(text) });
        response.writeHead(calls.length === 1 ? 503 : 204).end();
      });
    });
    await new Promise<void>((resolve) => webhook.listen(0, "127.0.0.1", resolve));
    t.after(() => webhook.close());
    const address = webhook.address();
    assert.ok(address !== null && typeof address !== "string");
    const workerd = await Workerd.start({
      file: "examples/reminders/workerd.capnp",
      words: ["-e", `webhook=127.0.0.1:${address.port}`],
    });
    t.after(() => workerd.stop());
    const put = (name: string, dueAt: number, reminder: object) =>
      fetch(`${workerd.url}/ada/${name}?dueAt=${dueAt}`, { method: "PUT", body: JSON.stringify(reminder) });

    await put("tea", Date.now() + 50, { text: "the tea is ready" });
    await until(async () => calls.length, (count) => count === 2);
    const [failed, taken] = calls;
    assert.deepEqual(taken, { key: failed?.key, body: { name: "tea", text: "the tea is ready" } });
    const sent = async () => (await (await fetch(`${workerd.url}/ada/sent`)).json()) as string[];
    await until(sent, (names) => names.includes("tea"));

    await put("stretch", Date.now() + 50, { text: "stretch", everyMs: 100 });
    await until(sent, (names) => names.filter((name) => name === "stretch").length >= 3);
    const keys = calls.slice(2).map(({ key }) => key);
    assert.equal(new Set(keys).size, keys.length);
    const pending = (await (await fetch(`${workerd.url}/ada`)).json()) as { name: string }[];
    assert.deepEqual(pending.map(({ name }) => name), ["stretch"]);
    assert.equal((await fetch(`${workerd.url}/ada/stretch`, { method: "DELETE" })).status, 204);
    assert.deepEqual(await (await fetch(`${workerd.url}/ada`)).json(), []);
  });
});
