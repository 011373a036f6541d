import type { ObjectHost } from "./host.js";

/** The methods that the core calls. */
type Called = Pick<ObjectHost, "run" | "settle" | "abandon" | "effect" | "ask" | "scheduled" | "wake" | "sleep" | "endSleep">;

/**
 * A host that does not keep its object alive. The module holds it as long as the object's timers are open
 * there, and they are closed when the object is collected: held firmly, neither would ever go.
 */
export function weakly(host: ObjectHost): Called {
  if (typeof WeakRef === "undefined") {
    return host;
  }
  const held = new WeakRef(host);
  const there = (): ObjectHost => {
    const found = held.deref();
    if (found === undefined) {
      throw new Error("the object is gone");
    }
    return found;
  };
  return {
    run: (...timer) => there().run(...timer),
    settle: (output, ...timer) => there().settle(output, ...timer),
    abandon: (run) => held.deref()?.abandon(run),
    effect: (number) => there().effect(number),
    ask: (hook, argument, verb, run) => there().ask(hook, argument, verb, run),
    scheduled: host.scheduled,
    wake: (task) => held.deref()?.wake(task),
    sleep: (ms) => held.deref()?.sleep(ms) ?? new Promise<void>(() => undefined),
    endSleep: (slept) => held.deref()?.endSleep(slept),
  };
}
