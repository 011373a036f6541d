// A wall clock that is ahead of the machine's, for one process: a small library in front of the system's.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { PACKAGE } from "./workerd.js";

let built: string | undefined;

/** Compiles the library, once. Throws where there is no Linux or no C compiler. */
function library(): string {
  if (built === undefined) {
    if (process.platform !== "linux") {
      throw new Error(`the clock of a process is moved on Linux only, not on ${process.platform}`);
    }
    const source = join(PACKAGE, "test/node/moved-clock.c");
    const compiled = join(PACKAGE, "dist-test", `moved-clock-${process.pid}.so`);
    const words = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", compiled];
    execFileSync(process.env.CC ?? "cc", words, { stdio: "inherit" });
    built = compiled;
  }
  return built;
}

/** The environment of a process whose clock is ahead by this many milliseconds. */
export function movedBy(ms: number): Record<string, string> {
  return { LD_PRELOAD: library(), DUELINE_MOVED_CLOCK_MS: String(Math.round(ms)) };
}
