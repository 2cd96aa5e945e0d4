import type { Collection, Db, Document } from 'mongodb';

/** End of a process before one of its writes. */
export class Killed extends Error {}

export interface Fuse {
  /** Writes that are still made; undefined for all. */
  left: number | undefined;
  /** Ends the process here when no write is left. */
  burn: () => void;
}

/** Counts writes down to the end of a process. */
export function createFuse(left: number | undefined): Fuse {
  return {
    left,
    burn() {
      if (this.left === undefined) return;
      if (this.left === 0) throw new Killed('killed');
      this.left -= 1;
    },
  };
}

const WRITES: readonly PropertyKey[] = ['insertOne', 'updateOne', 'updateMany', 'deleteMany'];

/** A database whose writes burn a fuse, each before it is made. */
export function fused(db: Db, fuse: Fuse): Db {
  const collection = (name: string) => fusedCollection(db.collection(name), fuse);
  return new Proxy(db, {
    get: (target, key) => (key === 'collection' ? collection : Reflect.get(target, key)),
  });
}

function fusedCollection(collection: Collection<Document>, fuse: Fuse) {
  return new Proxy(collection, {
    get: (target, key) => {
      const found: unknown = Reflect.get(target, key);
      if (typeof found !== 'function') return found;
      return (...args: unknown[]) => {
        if (WRITES.includes(key)) fuse.burn();
        return Reflect.apply(found, target, args);
      };
    },
  });
}
