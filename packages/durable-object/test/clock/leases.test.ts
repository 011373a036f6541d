// Goal: leases as an object has them: one holder, growing epochs, ends that wait for the holder's work, fenced
// writes. Method: an object under a virtual clock, its own table beside the leases.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { TimerObject, type BuiltIns, type Drain, type Lease, type Leases } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

let left: Drain = "drained";
let asked: Lease[] = [];

class Shard extends TimerObject<Record<string, never>> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS written (by TEXT)");
  }
  protected override handlers(): Record<string, never> {
    return {};
  }
  protected override builtIns(): BuiltIns {
    return {
      leases: {
        drain: (lease) => {
          asked.push(lease);
          return left;
        },
      },
    };
  }
  get leases(): Leases {
    return this.timers.leases;
  }
  write(by: string): () => void {
    return () => void this.ctx.storage.sql.exec("INSERT INTO written VALUES (?)", by);
  }
  counts() {
    return this.timers.counts();
  }
}

let clock: TestClock;
let shard: TestObject<Shard>;
const written = (): unknown[] => shard.sql("SELECT by FROM written").map(({ by }) => by);

beforeEach(async () => {
  left = "drained";
  asked = [];
  clock = TestClock.install();
  shard = await TestObject.open(clock, Shard);
});
afterEach(() => clock.uninstall());

describe("a lease", () => {
  it("has one holder until it is swept behind its expiry", async () => {
    const { leases } = shard.instance;
    const anns = await leases.grant("leader", { owner: "ann", term: 30_000 });
    assert.deepEqual(anns, {
      outcome: "granted",
      lease: { name: "leader", owner: "ann", epoch: 1, expiresAt: clock.now + 30_000, watermark: 0 },
    });
    const bobs = await leases.grant("leader", { owner: "bob", term: 30_000 });
    assert.deepEqual(bobs, { outcome: "held", lease: anns.lease });
    await clock.advance(29_999);
    assert.equal((await leases.get("leader")).outcome, "held");
    await clock.advance(1);
    assert.deepEqual(await leases.get("leader"), { outcome: "vacant", lastEpoch: 1, watermark: 0 });
    assert.deepEqual(asked, [anns.lease]);
    assert.equal((await leases.grant("leader", { owner: "bob", term: 1_000 })).lease.epoch, 2);
  });

  it("is kept while work of its holder is left", async () => {
    const { leases } = shard.instance;
    await leases.grant("leader", { owner: "ann", term: 1_000 });
    left = { watermark: 7 };
    await clock.advance(5_000);
    const kept = await leases.get("leader");
    assert.equal(kept.outcome === "held" && kept.lease.watermark, 7);
    left = "drained";
    await clock.advance(10_000);
    assert.deepEqual(await leases.get("leader"), { outcome: "vacant", lastEpoch: 1, watermark: 7 });
  });

  it("is renewed and released by its epoch alone", async () => {
    const { leases } = shard.instance;
    const { lease } = await leases.grant("leader", { owner: "ann", term: 1_000 });
    const renewed = await leases.renew("leader", { epoch: lease.epoch, term: 60_000 });
    assert.equal(renewed.outcome === "renewed" && renewed.lease.expiresAt, clock.now + 60_000);
    await clock.advance(30_000);
    assert.equal((await leases.get("leader")).outcome, "held");
    assert.equal((await leases.release("leader", { epoch: lease.epoch + 1 })).outcome, "lost");
    assert.deepEqual(await leases.release("leader", { epoch: lease.epoch }), { outcome: "released" });
    assert.deepEqual(await leases.renew("leader", { epoch: lease.epoch, term: 1 }), { outcome: "lost" });
    await clock.advance(60_000);
    assert.deepEqual(await shard.instance.counts(), []);
    assert.equal(await leases.forget("leader"), true);
    assert.deepEqual(await leases.get("leader"), { outcome: "vacant", lastEpoch: 0, watermark: 0 });
  });
});

describe("effects", () => {
  it("are done with the grant, and not if somebody else holds the lease", async () => {
    const { leases } = shard.instance;
    await leases.grant("leader", { owner: "ann", term: 1_000, effects: shard.instance.write("ann") });
    await leases.grant("leader", { owner: "bob", term: 1_000, effects: shard.instance.write("bob") });
    assert.deepEqual(written(), ["ann"]);
  });

  it("that throw undo the grant, and their error is the verb's", async () => {
    const { leases } = shard.instance;
    const thrown = new TypeError("no");
    const effects = (): void => {
      shard.instance.write("ann")();
      throw thrown;
    };
    await assert.rejects(leases.grant("leader", { owner: "ann", term: 1_000, effects }), thrown);
    assert.deepEqual(written(), []);
    assert.equal((await leases.get("leader")).outcome, "vacant");
  });

  it("behind a fence are done only while the lease is held", async () => {
    const { leases } = shard.instance;
    const { lease } = await leases.grant("leader", { owner: "ann", term: 1_000 });
    const write = shard.instance.write("ann");
    assert.equal(await leases.fenced("leader", { epoch: lease.epoch }, write), true);
    assert.equal(await leases.fenced("leader", { epoch: lease.epoch, until: clock.now - 1 }, write), false);
    await clock.advance(1_000);
    await leases.grant("leader", { owner: "bob", term: 1_000 });
    assert.equal(await leases.fenced("leader", { epoch: lease.epoch }, write), false);
    assert.deepEqual(written(), ["ann"]);
  });

  it("of a verb outlive an alarm that ends meanwhile", async () => {
    const { leases } = shard.instance;
    await leases.grant("first", { owner: "ann", term: 1_000 });
    const effects = shard.instance.write("bob");
    const granted = clock.advance(1_000);
    const second = leases.grant("second", { owner: "bob", term: 1_000, effects });
    await granted;
    assert.equal((await second).outcome, "granted");
    assert.deepEqual(written(), ["bob"]);
  });
});

it("names of leases, terms and epochs are looked at", async () => {
  const { leases } = shard.instance;
  const code = (code: string) => (error: unknown) => (error as { code?: string }).code === code;
  await assert.rejects(leases.grant("", { owner: "ann", term: 1 }), code("invalid"));
  await assert.rejects(leases.grant("x".repeat(257), { owner: "ann", term: 1 }), code("invalid"));
  await assert.rejects(leases.grant("x", { owner: "ann", term: 0 }), code("invalid"));
  await assert.rejects(leases.grant("x", { owner: "ann", term: Number.NaN }), code("due_out_of_range"));
  await assert.rejects(leases.renew("x", { owner: "ann", epoch: 1.5, term: 1 } as never), code("invalid"));
});
