import { isIP } from 'node:net';
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import { z } from 'zod';
import type { Passkey, UserDocument } from '../../../store/users';

/** @see docs/dashboard.md#passkeys */
export const CHALLENGE_MS = 5 * 60_000;
/** COSE numbers of EdDSA, ES256 and RS256. */
const ALGORITHMS = [-8, -7, -257];
/** A passkey that verifies its user (finger, face or PIN) is two factors. */
const userVerification = 'required';

/** Browsers bind passkeys to it. */
export interface Site {
  rpId: string;
  origin: string;
}

/** @returns null where browsers allow no passkeys */
export function findSite(publicUrl: string): Site | null {
  const { protocol, hostname: rpId, origin } = new URL(publicUrl);
  const isDomain = isIP(rpId.replace(/^\[|\]$/g, '')) === 0;
  const isSecure = protocol === 'https:' || rpId === 'localhost';
  return isDomain && isSecure ? { rpId, origin } : null;
}

/** Any passkey of the browser may sign in. */
export async function buildRequestOptions({ rpId: rpID }: Site) {
  return await generateAuthenticationOptions({ rpID, userVerification, timeout: CHALLENGE_MS });
}

/** The browser finds such a passkey without an e-mail address. */
export async function buildCreationOptions(
  { rpId: rpID }: Site,
  { _id, email, passkeys = [] }: Pick<UserDocument, '_id' | 'email' | 'passkeys'>,
  merchant: string,
) {
  return await generateRegistrationOptions({
    ...{ rpName: 'Payments dashboard', rpID, timeout: CHALLENGE_MS },
    userID: toBytes(Buffer.from(_id).toString('base64url')),
    // One address may have users of several merchants.
    userName: `${email} (${merchant})`,
    authenticatorSelection: { residentKey: 'required', userVerification },
    excludeCredentials: passkeys.map(({ credential_id: id }) => ({ id })),
    supportedAlgorithmIDs: ALGORITHMS,
  });
}

const Base64Url = z.string().regex(/^[\w-]+$/);

const Assertion = z.object({
  id: Base64Url,
  clientDataJSON: Base64Url,
  authenticatorData: Base64Url,
  signature: Base64Url,
  userHandle: Base64Url,
});

const Attestation = z.object({
  id: Base64Url,
  clientDataJSON: Base64Url,
  attestationObject: Base64Url,
});

const ClientData = z.object({ challenge: z.string() });

/** @returns null when malformed */
export const parseAssertion = (text: string) => parseAnswer(Assertion, text);
export const parseAttestation = (text: string) => parseAnswer(Attestation, text);

function parseAnswer<S extends z.ZodType<{ clientDataJSON: string }>>(schema: S, text: string) {
  const message = parseJson(schema, text);
  if (message === null) return null;
  const clientData = parseJson(ClientData, toText(message.clientDataJSON));
  return clientData && { ...clientData, message };
}

function parseJson<S extends z.ZodType>(schema: S, text: string): z.output<S> | null {
  try {
    return schema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

/** @returns the passkey's counter; null when the signature is wrong */
export async function verifyAssertion(
  { rpId: expectedRPID, origin: expectedOrigin }: Site,
  { challenge, message }: NonNullable<ReturnType<typeof parseAssertion>>,
  { user_id, passkey }: { user_id: string; passkey: Passkey },
): Promise<number | null> {
  const { id, userHandle, ...response } = message;
  if (toText(userHandle) !== user_id) return null;
  const { credential_id, public_key, counter } = passkey;
  const credential = { id: credential_id, publicKey: toBytes(public_key), counter };
  const verification = await verifyAuthenticationResponse({
    response: { ...buildCredential(id), response },
    ...{ expectedChallenge: challenge, expectedOrigin, expectedRPID, credential },
  }).catch(toNull);
  return verification?.verified ? verification.authenticationInfo.newCounter : null;
}

/** @returns null when it is wrong */
export async function verifyAttestation(
  { rpId: expectedRPID, origin: expectedOrigin }: Site,
  { challenge, message }: NonNullable<ReturnType<typeof parseAttestation>>,
): Promise<Pick<Passkey, 'credential_id' | 'public_key' | 'counter'> | null> {
  const { id, ...response } = message;
  const verification = await verifyRegistrationResponse({
    response: { ...buildCredential(id), response },
    ...{ expectedChallenge: challenge, expectedOrigin, expectedRPID },
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch(toNull);
  const credential = verification?.registrationInfo?.credential;
  if (credential === undefined) return null;
  const public_key = Buffer.from(credential.publicKey).toString('base64url');
  return { credential_id: credential.id, public_key, counter: credential.counter };
}

/** The library throws the fault of a message. */
const toNull = () => null;

function buildCredential(id: string) {
  return { id, rawId: id, type: 'public-key', clientExtensionResults: {} } as const;
}

const toText = (base64Url: string) => Buffer.from(base64Url, 'base64url').toString();
const toBytes = (base64Url: string) => Uint8Array.from(Buffer.from(base64Url, 'base64url'));
