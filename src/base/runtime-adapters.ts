import os from 'node:os';

/** Modules for MongoDB's driver, whose own dynamic import of `os` fails under jest's CommonJS. */
export const RUNTIME_ADAPTERS = { os };
