// The page: its bar, the cells, and what is said to whoever cannot see them.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { cancel, isRunning, runAll } from "../notebook/evaluate.ts";
import { canBench } from "../notebook/catalogue.ts";
import * as notebook from "../notebook/notebook.ts";
import { isBuiltIn } from "../notebook/models.ts";
import * as opening from "../notebook/opening.ts";
import { savedAt, snapshot } from "../storage/autosave.ts";
import { save } from "../storage/download.ts";
import { writeNotebook } from "../storage/ipynb.ts";
import { foreignFiles, linkOf, linkShown } from "../storage/share.ts";
import { storageFailed } from "../storage/store.ts";
import { isKeeper, takeOver } from "../storage/tabs.ts";
import { CellView } from "./cell_view.tsx";
import { Help } from "./help.tsx";
import { keyTable, listen } from "./keys.ts";
import { OpenMenu } from "./open_menu.tsx";

export function download(): void {
  const name = `${notebook.title.value}.ipynb`;
  save(name, "application/x-ipynb+json", writeNotebook(notebook.cells.value, "all"));
  notebook.say(`${name} downloaded`);
}

async function share(): Promise<void> {
  const foreign = foreignFiles(notebook.cells.value, isBuiltIn);
  if (foreign.length > 0) {
    const names = foreign.join(", ");
    opening.message.value = `A link cannot carry ${names}; download the notebook instead.`;
    return;
  }
  try {
    const hash = await linkOf(notebook.cells.value);
    history.replaceState(null, "", hash);
    linkShown(snapshot());
    await navigator.clipboard.writeText(location.href);
    opening.message.value = "The link is copied, and stands in the address bar.";
  } catch (error) {
    const isInBar = location.hash.startsWith("#s=");
    opening.message.value = isInBar
      ? "The link stands in the address bar; this browser would not copy it."
      : (error as Error).message;
  }
}

function Saved() {
  const at = savedAt.value;
  if (!isKeeper.value) return <span class="bad">not saved: another tab keeps its notebook</span>;
  if (storageFailed.value) return <span class="bad">not saved: this browser keeps nothing</span>;
  if (!at) return null;
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return <span class="soft">saved here {time}</span>;
}

function Title() {
  return (
    <input
      class="title"
      aria-label="Name of the notebook"
      value={notebook.title.value}
      onChange={(event) => (notebook.title.value = event.currentTarget.value.trim() || "untitled")}
    />
  );
}

const kinds = [
  ["model", "Model"],
  ["passes", "Passes"],
  ["bench", "Bench"],
  ["markdown", "Text"],
] as const;

function AddCell() {
  const end = () => notebook.cells.value.length;
  return (
    <p class="add" role="group" aria-label="Add a cell at the end">
      Add
      {kinds
        .filter(([kind]) => kind !== "bench" || canBench.value)
        .map(([kind, word]) => (
          <button key={kind} onClick={() => notebook.add(kind, end())}>
            {word}
          </button>
        ))}
    </p>
  );
}

export function App() {
  const dialog = useSignal<"help" | "open" | null>(null);
  const isDropping = useSignal(false);
  const isBusy = useComputed(() => isRunning.value);
  const table = useMemo(
    () => keyTable({ help: () => (dialog.value = "help"), save: download }),
    [dialog],
  );
  useEffect(() => listen(table), [table]);
  const close = () => (dialog.value = null);

  return (
    <div
      class={isDropping.value ? "page dropping" : "page"}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        isDropping.value = true;
      }}
      onDragLeave={(event) => {
        if (event.relatedTarget === null) isDropping.value = false;
      }}
      onDrop={(event) => {
        isDropping.value = false;
        const files = event.dataTransfer?.files;
        if (!files || files.length === 0) return;
        event.preventDefault();
        void opening.openFiles(files);
      }}
    >
      <header>
        <b>Lathe</b>
        <Title />
        <Saved />
        <span class="space" />
        <button onClick={() => (dialog.value = "open")}>Open…</button>
        <button onClick={() => void share()}>Share link</button>
        <button onClick={download}>Download</button>
        <button onClick={() => (dialog.value = "help")} aria-label="Keys" title="Keys (?)">
          ?
        </button>
        {isBusy.value ? (
          <button class="primary" onClick={cancel}>
            Cancel
          </button>
        ) : (
          <button class="primary" onClick={() => void runAll()}>
            Run all
          </button>
        )}
      </header>
      {opening.message.value && (
        <p class="message" role="alert">
          {opening.message.value}
          <button onClick={() => (opening.message.value = "")} aria-label="Dismiss">
            ✕
          </button>
        </p>
      )}
      {!isKeeper.value && (
        <p class="message" role="alert">
          Lathe is open in another tab, whose notebook is the one that is saved. What you do here is
          not, until that tab is closed or you take over; its notebook stays under Open.
          <button onClick={takeOver}>Save this one instead</button>
        </p>
      )}
      <main aria-label="Notebook">
        {notebook.cells.value.map((cell) => (
          <CellView key={cell.id} cell={cell} />
        ))}
        {notebook.cells.value.length === 0 && (
          <p class="soft">No cells. Add one, open a model, or drop a file.</p>
        )}
        <AddCell />
      </main>
      <div class="visually-hidden" role="status" aria-live="polite">
        {notebook.said.value}
      </div>
      {dialog.value === "help" && <Help table={table} close={close} />}
      {dialog.value === "open" && <OpenMenu close={close} />}
    </div>
  );
}
