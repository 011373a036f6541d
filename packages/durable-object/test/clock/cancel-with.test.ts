// Goal: a timer that fires cancels others in its own commit: all of it happens, or nothing. Method: a game under a
// virtual clock, whose end cancels its turns.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { dead, detached, done, reschedule, TimerObject, type Handlers, type Settings } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type Kinds = {
  end: { how: "done" | "dead" | "reschedule" | "fail" | "own" | "both" | "twice" | "many" | "unknown" };
  turn: undefined;
  call: undefined;
};

class Game extends TimerObject<Kinds> {
  readonly turns: string[] = [];

  protected override settings(): Settings {
    return { log: false };
  }

  async lastError(): Promise<string | undefined> {
    return (await this.deadLetters.list()).items[0]?.lastError;
  }

  protected override handlers(): Handlers<Kinds> {
    const cancel = [{ kind: "turn", name: "next" }, { kind: "call", name: "under way" }] as const;
    const fail = (): never => {
      throw new Error("no end");
    };
    return {
      end: {
        run: (timer) => {
          switch (timer.payload.how) {
            case "done":
              return done({ cancel, schedule: [{ kind: "turn", name: "other", after: 60_000 }] });
            case "dead":
              return dead("over", { cancel });
            case "reschedule":
              return reschedule({ after: 60_000 }, { cancel });
            case "fail":
              return done({ cancel, effects: fail });
            case "own":
              return done({ cancel: [{ kind: "end", name: timer.name ?? "" }] });
            case "both":
              return done({ cancel, schedule: [{ kind: "turn", name: "next", after: 60_000 }] });
            case "twice":
              return done({ schedule: [1, 2].map((minutes) => ({ kind: "turn", name: "next", after: minutes * 60_000 })) });
            case "many":
              return done({ cancel: Array.from({ length: 21 }, (_, index) => ({ kind: "turn" as const, name: `${index}` })) });
            case "unknown":
              return done({ cancel: [{ kind: "tern" as "turn", name: "next" }] });
          }
        },
        retry: { attempts: 1 },
      },
      turn: (timer) => () => this.turns.push(timer.name ?? ""),
      call: detached({
        call: () => new Promise((resolve) => setTimeout(resolve, 10_000)),
        settle: () => () => this.turns.push("call"),
      }),
    };
  }
}

describe("a cancel beside a fire", () => {
  let clock: TestClock;
  let object: TestObject<Game>;

  const names = async (): Promise<string[]> =>
    (await object.instance.list("turn")).items.map(({ name }) => name ?? "").concat(
      (await object.instance.list("call")).items.map(({ name }) => name ?? ""),
    );
  const lastError = async (): Promise<string> => (await object.instance.lastError()) ?? "";

  /** Ends a game whose next turn waits, and one of whose calls is under way. */
  async function end(how: Kinds["end"]["how"]): Promise<void> {
    await object.instance.schedule("call", { name: "under way", after: 0 });
    await object.instance.schedule("turn", { name: "next", after: 30_000 });
    await object.instance.schedule("end", { name: "end", after: 5_000, payload: { how } });
    await clock.advance(6_000);
  }

  beforeEach(async () => {
    clock = TestClock.install();
    object = await TestObject.open(clock, Game);
  });
  afterEach(() => clock.uninstall());

  for (const [how, left] of [["done", ["other"]], ["dead", []], ["reschedule", []]] as const) {
    it(`goes with \`${how}\`, and what a call under way brings back is dropped`, async () => {
      await end(how);
      assert.deepEqual(await names(), left);
      await clock.advance(40_000);
      assert.deepEqual(object.instance.turns, []);
    });
  }

  it("does not happen if the effects beside it fail", async () => {
    await end("fail");
    assert.deepEqual(await names(), ["next", "under way"]);
    await clock.advance(40_000);
    assert.deepEqual(object.instance.turns, ["call", "next"]);
  });

  it("of a timer that is not there is none", async () => {
    await object.instance.schedule("end", { name: "end", after: 5_000, payload: { how: "done" } });
    await clock.advance(6_000);
    assert.deepEqual(await names(), ["other"]);
  });

  for (const [how, error] of [
    ["own", /does not schedule or cancel the timer that it handles/],
    ["both", /invalid: a timer is scheduled or cancelled once with another, not twice: "next"/],
    ["twice", /invalid: a timer is scheduled or cancelled once with another, not twice: "next"/],
    ["many", /invalid: timers cancelled with another are a list of 0 to 18/],
    ["unknown", /unknown_kind: no handler of this object is or was called `tern`/],
  ] as const) {
    it(`is refused, and nothing written, where it makes no sense: ${how}`, async () => {
      await end(how);
      assert.match(await lastError(), error);
      assert.deepEqual(await names(), ["next", "under way"]);
    });
  }
});
