import {
  buildCreationOptions,
  findSite,
  parseAssertion,
  parseAttestation,
  verifyAssertion,
  verifyAttestation,
} from '../../../src/service/merchants/team/passkeys';
import { createAuthenticator } from '../../support/authenticator';

const SITE = { rpId: 'pay.example', origin: 'https://pay.example' };
const USER = 'user_1';
const CHALLENGE = 'Y2hhbGxlbmdl';

async function enroll(device = createAuthenticator(SITE, USER)) {
  const attestation = parseAttestation(device.create(CHALLENGE));
  const credential = attestation && (await verifyAttestation(SITE, attestation));
  if (credential === null) throw new Error('The passkey was not accepted.');
  const passkey = {
    ...{ ...credential, counter: 7, id: 'passkey_1', name: 'Phone' },
    ...{ created_at: '2026-01-01T00:00:00.000Z', last_used_at: null },
  };
  const verify = async (message: string) => {
    const assertion = parseAssertion(message);
    return assertion && (await verifyAssertion(SITE, assertion, { user_id: USER, passkey }));
  };
  return { device, verify };
}

test('a passkey signs in, and its counter increases', async () => {
  const { device, verify } = await enroll();
  expect(await verify(device.use(CHALLENGE, { counter: 8 }))).toBe(8);
});

test.each([
  ['of another origin', { origin: 'https://evil.example' }],
  ['of another port', { origin: 'https://pay.example:8443' }],
  ['of another site', { rpId: 'evil.example' }],
  ['of another ceremony', { type: 'webauthn.create' }],
  ['of another user', { user_id: 'user_2' }],
  ['whose counter stays', { counter: 7 }],
  ['whose counter goes back', { counter: 6 }],
  ['whose counter starts over', { counter: 0 }],
  ['that did not verify its user', { flags: 0b001 }],
  ['without its user', { flags: 0b100 }],
])('a sign-in %s is refused', async (_how, faults) => {
  const { device, verify } = await enroll();
  expect(await verify(device.use(CHALLENGE, { counter: 8, ...faults }))).toBeNull();
});

test('a sign-in that another device signed, or that was changed, is refused', async () => {
  const { device, verify } = await enroll();
  const other = createAuthenticator(SITE, USER);
  const { id } = JSON.parse(device.use(CHALLENGE));
  const stolen = { ...JSON.parse(other.use(CHALLENGE, { counter: 8 })), id };
  expect(await verify(JSON.stringify(stolen))).toBeNull();
  const { clientDataJSON } = JSON.parse(device.use('b3RoZXI'));
  const changed = { ...JSON.parse(device.use(CHALLENGE, { counter: 8 })), clientDataJSON };
  expect(await verify(JSON.stringify(changed))).toBeNull();
});

test.each([
  ['of another origin', { origin: 'https://evil.example' }],
  ['of another site', { rpId: 'evil.example' }],
  ['that cannot verify its user', { flags: 0b001 }],
])('a new passkey %s is refused', async (_how, faults) => {
  const device = createAuthenticator(SITE, USER);
  const attestation = parseAttestation(device.create(CHALLENGE, faults));
  expect(attestation && (await verifyAttestation(SITE, attestation))).toBeNull();
});

test.each(['', '{}', 'null', '[]', '{"id":"a"}', '{"id":"a/b","clientDataJSON":"e30"}'])(
  'the message %j is no passkey message',
  (text) => {
    expect([parseAssertion(text), parseAttestation(text)]).toEqual([null, null]);
  },
);

test('a message with parts that are no JSON or no bytes of a passkey is refused', async () => {
  const { device, verify } = await enroll();
  const good = JSON.parse(device.use(CHALLENGE, { counter: 8 }));
  for (const name of ['clientDataJSON', 'authenticatorData', 'signature', 'userHandle']) {
    expect([name, await verify(JSON.stringify({ ...good, [name]: 'AAAA' }))]).toEqual([name, null]);
  }
});

test('the options of a new passkey name the user, the merchant and the existing passkeys', async () => {
  const passkey = { id: 'passkey_1', credential_id: 'AQID', public_key: '', counter: 0, name: '' };
  const passkeys = [{ ...passkey, created_at: '', last_used_at: null }];
  const user = { _id: USER, email: 'ana@example.com', passkeys };
  expect(await buildCreationOptions(SITE, user, 'Shop')).toMatchObject({
    rp: { id: 'pay.example' },
    user: { id: Buffer.from(USER).toString('base64url'), name: 'ana@example.com (Shop)' },
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    excludeCredentials: [{ id: 'AQID' }],
    attestation: 'none',
  });
});

test.each([
  ['https://pay.example:8443', 'pay.example'],
  ['http://localhost:8080', 'localhost'],
  ['http://pay.example', undefined],
  ['http://127.0.0.1:8080', undefined],
  ['https://192.0.2.1', undefined],
  ['https://[2001:db8::1]', undefined],
])('the public URL %s has the site %s', (publicUrl, rpId) => {
  expect(findSite(publicUrl)?.rpId).toBe(rpId);
});
