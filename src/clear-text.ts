import os from 'node:os';
import { MongoClient } from 'mongodb';
import type { TemporalAccess } from './temporal/access';
import { isLoopback } from './webhooks/address';

/** Value of `ALLOW_CLEAR_TEXT` that lets servers beyond this machine be spoken to in clear. */
export const CLEAR_TEXT_ALLOWED = 'yes';

/** Says why Temporal may not be reached like this; undefined when it may. */
export function temporalInClear({ address, tls }: TemporalAccess): string | undefined {
  const host = hostOf(address);
  if (isHere(host) || (tls !== undefined && tls !== null && tls !== false)) return undefined;
  return `Temporal at ${host} would be spoken to in clear: set TEMPORAL_TLS=true, ${OR_ALLOW}`;
}

/** Says why MongoDB may not be reached like this; undefined when it may, or the address is none. */
export function mongoInClear(uri: string): string | undefined {
  const options = optionsOf(uri);
  if (options === undefined) return undefined;
  const { hosts, srvHost, tls, rejectUnauthorized, checkServerIdentity } = options;
  const names = srvHost === undefined ? hosts.map(({ host }) => host) : [srvHost];
  // A host without a name is a socket of this machine.
  const away = names.find((name) => name !== undefined && !isHere(name));
  if (away === undefined) return undefined;
  if (!tls) return `MongoDB at ${away} would be spoken to in clear: add tls=true, ${OR_ALLOW}`;
  if (rejectUnauthorized !== false && checkServerIdentity === undefined) return undefined;
  return `MongoDB at ${away} would be taken at its word: leave its certificate checked, ${OR_ALLOW}`;
}

/** Says why a URL may not be asked; undefined when it may. It names the variable, not the URL. */
export function urlInClear(variable: string, url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' || isHere(hostname)) return undefined;
  return `${variable}: would be spoken to in clear: give an https URL, ${OR_ALLOW}`;
}

const OR_ALLOW = `or ALLOW_CLEAR_TEXT=${CLEAR_TEXT_ALLOWED} where the network itself is trusted`;

function hostOf(address: string): string {
  try {
    return new URL(`http://${address}`).hostname;
  } catch {
    return address;
  }
}

function isHere(host: string): boolean {
  return host === 'localhost' || isLoopback(host.replace(/^\[|\]$/g, ''));
}

/** Options as the driver reads them; undefined for an address that it can't read. */
function optionsOf(uri: string) {
  try {
    // The driver's own dynamic import of `os` fails under jest's CommonJS.
    return new MongoClient(uri, { runtimeAdapters: { os } }).options;
  } catch {
    return undefined;
  }
}
