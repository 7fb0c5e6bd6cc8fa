// Everything that brings a notebook or a model onto the page: files, lessons, links, the last
// visit.
import { signal } from "@preact/signals";
import { BadNotebook, readNotebook } from "../storage/ipynb.ts";
import { linkShown, readLink, saysTheSame } from "../storage/share.ts";
import { keepPrevious, restored, snapshot } from "../storage/autosave.ts";
import { hasPrevious, storedNotebook } from "../storage/store.ts";
import { endVisit, isVisiting, startVisit } from "../storage/visit.ts";
import { quote } from "../source/parse.ts";
import { makeCell, type Cell } from "./cell.ts";
import { run, runAll } from "./evaluate.ts";
import { lessonText } from "./lessons.ts";
import { addFile, isBundleFile, isModelFile, nameFor } from "./models.ts";
import * as notebook from "./notebook.ts";

// What a person must know about the last thing that was opened or shared.
export const message = signal("");

const mostNotebook = 64 << 20; // bytes

function starting(): Cell[] {
  return [
    makeCell(
      "markdown",
      "**What does fusion buy an attention block?** The graph below was exported from PyTorch. " +
        "Switch a pass, or drag one, and everything under it is compiled again, in this page. " +
        "Press `?` for the keys.",
    ),
    makeCell("model", 'block = import("attention_block")'),
    makeCell("passes", 'fast = passes(block, "default")'),
  ];
}

// Cells for a model: the model's own and the default passes.
export async function openModel(file: string, at = notebook.cells.value.length): Promise<void> {
  const name = notebook.freeName(nameFor(file));
  const model = notebook.insert(makeCell("model", `${name} = import(${quote(file)})`), at);
  const source = `${name}_fast = passes(${name}, "default")`;
  notebook.insert(makeCell("passes", source), at + 1);
  notebook.focus(model.id);
  await run(model);
}

async function openBundle(file: string): Promise<void> {
  const cell = makeCell("bundle", `bundle(${quote(file)})`);
  notebook.insert(cell, notebook.cells.value.length);
  notebook.focus(cell.id);
  await run(cell);
}

async function openNotebook(text: string, name: string): Promise<void> {
  const read = readNotebook(text);
  await keepPrevious();
  notebook.load(read, name);
  await runAll({ bench: false });
}

export async function openFiles(files: FileList): Promise<void> {
  for (const file of files) {
    try {
      if (file.name.endsWith(".ipynb")) {
        if (file.size > mostNotebook) throw new BadNotebook("the notebook has more than 64 MB");
        await openNotebook(await file.text(), file.name.replace(/\.ipynb$/, ""));
      } else if (isModelFile(file.name)) {
        addFile(file);
        await openModel(file.name);
      } else if (isBundleFile(file.name)) {
        addFile(file);
        await openBundle(file.name);
      } else {
        throw new BadNotebook(
          "expected a model (.pt2, .json, .json.gz, .lathe), a notebook (.ipynb) or a bundle " +
            "(.zip: lathe.capture writes one where its path ends so; a folder is not opened here)",
        );
      }
      message.value = "";
    } catch (error) {
      message.value = `${file.name}: ${(error as Error).message}`;
    }
  }
}

export async function openLesson(name: string): Promise<void> {
  try {
    await openNotebook(await lessonText(name), name);
    message.value = "";
  } catch (error) {
    message.value = (error as Error).message;
  }
}

// Changes places with the notebook that is open; a visitor leaves.
export async function openPrevious(): Promise<void> {
  const previous = await restored(isVisiting() ? "current" : "previous");
  if (!previous) return;
  if (isVisiting()) {
    endVisit();
    hasPrevious.value = (await storedNotebook("previous")) !== null;
  } else {
    await keepPrevious();
  }
  notebook.load(previous.cells, previous.title);
  await runAll({ bench: false });
}

// A link, or else what was here last, or else the first page.
export async function openFirst(): Promise<void> {
  try {
    const shared = await readLink(location.hash);
    if (shared) {
      // A reload of what was shared from here: its figures are kept.
      const mine = await restored("current");
      const isMine = mine !== null && saysTheSame(mine.cells, shared);
      const kept = await storedNotebook(isMine ? "previous" : "current");
      hasPrevious.value = kept !== null;
      notebook.load(isMine ? mine.cells : shared, isMine ? mine.title : "shared");
      linkShown(snapshot());
      if (!isMine) startVisit(snapshot());
      return await runAll({ bench: false });
    }
  } catch (error) {
    message.value = (error as Error).message;
  }
  const last = await restored("current");
  hasPrevious.value = (await storedNotebook("previous")) !== null;
  notebook.load(last?.cells ?? starting(), last?.title ?? "fusion");
  await runAll({ bench: false });
}
