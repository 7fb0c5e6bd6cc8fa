// Starts the page.
import { render } from "preact";
import { loadCatalogue } from "./notebook/catalogue.ts";
import { openFirst } from "./notebook/opening.ts";
import { snapshot, startAutosave } from "./storage/autosave.ts";
import { startKeeping } from "./storage/tabs.ts";
import { App } from "./view/app.tsx";
import "./view/page.css";
import "./view/cell.css";
import "./view/bundle.css";
import "./view/passes.css";
import "./view/sizes.css";

const root = document.getElementById("app");
root?.replaceChildren();
if (root) render(<App />, root);

// Without it everything works but a reload without a network.
if ("serviceWorker" in navigator && import.meta.env.PROD)
  navigator.serviceWorker.register("service_worker.js").catch(() => undefined);

// The editor is wanted soon, but not before the first cells are there.
const loadEditor = () => void import("./view/editor.ts");

await startKeeping(snapshot);
const opened = openFirst();
startAutosave();
await Promise.all([opened, loadCatalogue().catch(() => undefined)]);
setTimeout(loadEditor, 200);
