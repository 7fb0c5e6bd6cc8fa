// What stays in the browser: the notebook as it was last, and the files it needs. Where storage is
// refused (a private window) everything works but nothing is kept; `storageFailed` says so.
import { signal } from "@preact/signals";

export const storageFailed = signal(false);

const largest = 512 << 20; // bytes of a file that is kept

let database: Promise<IDBDatabase> | null = null;

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("storage failed"));
  });
}

function openDatabase(): Promise<IDBDatabase> {
  database ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("lathe", 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("notebooks");
      request.result.createObjectStore("files");
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("no storage"));
  });
  return database;
}

async function put(table: "notebooks" | "files", key: string, value: unknown): Promise<void> {
  try {
    const transaction = (await openDatabase()).transaction(table, "readwrite");
    await done(transaction.objectStore(table).put(value, key));
    storageFailed.value = false;
  } catch {
    storageFailed.value = true;
  }
}

async function get(table: "notebooks" | "files", key: string): Promise<unknown> {
  try {
    const transaction = (await openDatabase()).transaction(table, "readonly");
    return (await done(transaction.objectStore(table).get(key))) as unknown;
  } catch {
    storageFailed.value = true;
    return undefined;
  }
}

// "previous" is what another notebook took the place of.
export type Slot = "current" | "previous";

// Whether there is a notebook that the open one took the place of.
export const hasPrevious = signal(false);

export async function storeNotebook(slot: Slot, text: string): Promise<void> {
  await put("notebooks", slot, text);
  if (slot === "previous") hasPrevious.value = true;
}

export async function storedNotebook(slot: Slot): Promise<string | null> {
  const text = await get("notebooks", slot);
  return typeof text === "string" ? text : null;
}

export async function storeFile(name: string, file: Blob): Promise<void> {
  if (file.size <= largest) await put("files", name, file);
}

export async function storedFile(name: string): Promise<Blob | null> {
  const file = await get("files", name);
  return file instanceof Blob ? file : null;
}
