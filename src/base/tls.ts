import { MongoClient } from 'mongodb';
import { isLoopback } from './networks';
import { RUNTIME_ADAPTERS } from './runtime-adapters';

export const PLAIN_TEXT_ALLOWED = 'yes';

/** @returns fault; undefined if allowed */
export function checkTemporalTls(access: { address: string; tls?: unknown }): string | undefined {
  const { address, tls } = access;
  const url = `http://${address}`;
  const host = URL.canParse(url) ? new URL(url).hostname : address;
  if (isLocalHost(host) || (tls !== undefined && tls !== null && tls !== false)) return undefined;
  return `The connection to Temporal at ${host} would be without TLS: set TEMPORAL_TLS=true, ${OR_ALLOW}`;
}

/** @returns fault; undefined if allowed, or for an invalid URI */
export function checkMongoTls(uri: string): string | undefined {
  let options: MongoClient['options'];
  try {
    options = new MongoClient(uri, { runtimeAdapters: RUNTIME_ADAPTERS }).options;
  } catch {
    return undefined;
  }
  const { hosts, srvHost, tls, rejectUnauthorized, checkServerIdentity } = options;
  const names = srvHost === undefined ? hosts.map(({ host }) => host) : [srvHost];
  // A host without a name is a local socket.
  const remoteHost = names.find((name) => name !== undefined && !isLocalHost(name));
  if (remoteHost === undefined) return undefined;
  if (!tls)
    return `The connection to MongoDB at ${remoteHost} would be without TLS: add tls=true, ${OR_ALLOW}`;
  if (rejectUnauthorized !== false && checkServerIdentity === undefined) return undefined;
  return `The certificate of MongoDB at ${remoteHost} would not be verified: remove that option, ${OR_ALLOW}`;
}

/** @returns fault, which never quotes the URL; undefined if allowed */
export function checkUrlTls(variable: string, url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' || isLocalHost(hostname)) return undefined;
  return `${variable}: the connection would be without TLS: set an https URL, ${OR_ALLOW}`;
}

const OR_ALLOW = `or ALLOW_CLEAR_TEXT=${PLAIN_TEXT_ALLOWED} if the network is trusted`;

export function isLocalHost(host: string): boolean {
  return host === 'localhost' || isLoopback(host.replace(/^\[|\]$/g, ''));
}
