import type { ObjectHost } from "./host.js";
import type { CoreTimer } from "./running.js";

/** The methods that the core calls. */
interface Called extends Pick<ObjectHost, "said" | "abandon" | "effect" | "refusal" | "ask" | "scheduled" | "wake" | "sleep" | "endSleep"> {
  run(...timer: CoreTimer): number;
  settle(output: unknown, ...timer: CoreTimer): number;
}

const GONE = "the object is gone";

/**
 * A host that does not keep its object alive. The module holds it as long as the object's timers are open
 * there, and they are closed when the object is collected: held firmly, neither would ever go.
 */
export function weakly(host: ObjectHost): Called {
  const held = typeof WeakRef === "undefined" ? { deref: () => host } : new WeakRef(host);
  const there = (): ObjectHost => {
    const found = held.deref();
    if (found === undefined) {
      throw new Error(GONE);
    }
    return found;
  };
  return {
    run: (...timer) => held.deref()?.run(timer) ?? -1,
    settle: (output, ...timer) => held.deref()?.settle(output, timer) ?? -1,
    said: () => held.deref()?.said() ?? { said: "failed", reason: GONE },
    abandon: (run) => held.deref()?.abandon(run),
    effect: (number) => held.deref()?.effect(number) ?? false,
    refusal: () => held.deref()?.refusal() ?? GONE,
    ask: (hook, argument, verb, run) => there().ask(hook, argument, verb, run),
    scheduled: host.scheduled,
    wake: (task) => held.deref()?.wake(task),
    sleep: (ms) => held.deref()?.sleep(ms) ?? new Promise<void>(() => undefined),
    endSleep: (slept) => held.deref()?.endSleep(slept),
  };
}
