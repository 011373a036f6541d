# Runs the example on this machine, behind `cargo xtask object` has built it:
#   mkdir -p /tmp/reminders && workerd serve examples/reminders/workerd.capnp
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "disk", disk = (path = "/tmp/reminders", writable = true)),
    # Whatever the worker calls is on this machine.
    (name = "webhook", external = (address = "127.0.0.1:8789", http = ())),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8788", http = (), service = "main")],
);

const main :Workerd.Worker = (
  modules = [
    (name = "main", esModule = embed "../../dist-examples/reminders/src/index.js"),
    (name = "@dueline/durable-object", esModule = embed "../../dist/index.js"),
    (name = "@dueline/alarm-handler.js", esModule = embed "../../dist/alarm-handler.js"),
    (name = "@dueline/base-timer-object.js", esModule = embed "../../dist/base-timer-object.js"),
    (name = "@dueline/base-timers.js", esModule = embed "../../dist/base-timers.js"),
    (name = "@dueline/checks.js", esModule = embed "../../dist/checks.js"),
    (name = "@dueline/common.js", esModule = embed "../../dist/common.js"),
    (name = "@dueline/core-sql.js", esModule = embed "../../dist/core-sql.js"),
    (name = "@dueline/dead-letters.js", esModule = embed "../../dist/dead-letters.js"),
    (name = "@dueline/engine.js", esModule = embed "../../dist/engine.js"),
    (name = "@dueline/errors.js", esModule = embed "../../dist/errors.js"),
    (name = "@dueline/handlers.js", esModule = embed "../../dist/handlers.js"),
    (name = "@dueline/hooks.js", esModule = embed "../../dist/hooks.js"),
    (name = "@dueline/host.js", esModule = embed "../../dist/host.js"),
    (name = "@dueline/instance.js", esModule = embed "../../dist/instance.js"),
    (name = "@dueline/json.js", esModule = embed "../../dist/json.js"),
    (name = "@dueline/kept-effects.js", esModule = embed "../../dist/kept-effects.js"),
    (name = "@dueline/log.js", esModule = embed "../../dist/log.js"),
    (name = "@dueline/opened.js", esModule = embed "../../dist/opened.js"),
    (name = "@dueline/outcomes.js", esModule = embed "../../dist/outcomes.js"),
    (name = "@dueline/own-alarm.js", esModule = embed "../../dist/own-alarm.js"),
    (name = "@dueline/payload.js", esModule = embed "../../dist/payload.js"),
    (name = "@dueline/running.js", esModule = embed "../../dist/running.js"),
    (name = "@dueline/schedule-many.js", esModule = embed "../../dist/schedule-many.js"),
    (name = "@dueline/settings.js", esModule = embed "../../dist/settings.js"),
    (name = "@dueline/taken-away.js", esModule = embed "../../dist/taken-away.js"),
    (name = "@dueline/timer-object.js", esModule = embed "../../dist/timer-object.js"),
    (name = "@dueline/timers.js", esModule = embed "../../dist/timers.js"),
    (name = "@dueline/views.js", esModule = embed "../../dist/views.js"),
    (name = "@dueline/wanted.js", esModule = embed "../../dist/wanted.js"),
    (name = "@dueline/weak-host.js", esModule = embed "../../dist/weak-host.js"),
    (name = "@dueline/generated/dueline_object.js", esModule = embed "../../dist/generated/dueline_object.js"),
    (name = "@dueline/generated/dueline_object_bg.wasm", wasm = embed "../../dist/generated/dueline_object_bg.wasm"),
  ],
  globalOutbound = "webhook",
  compatibilityDate = "2026-10-01",
  bindings = [
    (name = "WEBHOOK_URL", text = "https://example.com/reminders"),
    (name = "USERS", durableObjectNamespace = "Reminders"),
  ],
  durableObjectNamespaces = [(className = "Reminders", uniqueKey = "reminders", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
);
