export const PASSKEY_JS = `'use strict';
(() => {
  if (!window.PublicKeyCredential) return;
  const FIELDS = [
    'clientDataJSON', 'authenticatorData', 'signature', 'userHandle', 'attestationObject',
  ];
  const FAULTS = {
    NotAllowedError: 'No passkey was used: it was cancelled, or took too long.',
    InvalidStateError: 'This device has one of your passkeys already.',
    SecurityError: 'Passkeys work only at the address that this service is set up for.',
  };
  const toBytes = (text) =>
    Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  const get = async () => {
    const response = await fetch('/dashboard/sign-in/passkey/challenge', { method: 'POST' });
    if (!response.ok) throw new Error(await response.text());
    const options = await response.json();
    const publicKey = { ...options, challenge: toBytes(options.challenge) };
    return await navigator.credentials.get({ publicKey });
  };
  const create = async (options) => {
    const publicKey = {
      ...options,
      challenge: toBytes(options.challenge),
      user: { ...options.user, id: toBytes(options.user.id) },
      excludeCredentials: options.excludeCredentials.map((each) => ({ ...each, id: toBytes(each.id) })),
    };
    return await navigator.credentials.create({ publicKey });
  };
  for (const button of document.querySelectorAll('[data-passkey]')) {
    const { form } = button;
    const fault = form.querySelector('[data-passkey-fault]');
    button.hidden = false;
    button.addEventListener('click', async () => {
      if (!form.reportValidity()) return;
      fault.hidden = true;
      button.disabled = true;
      try {
        const how = button.dataset.passkey;
        const { id, response } = how === 'get' ? await get() : await create(JSON.parse(how));
        const message = { id };
        for (const name of FIELDS) if (response[name]) message[name] = toText(response[name]);
        form.elements.passkey.value = JSON.stringify(message);
        form.requestSubmit();
      } catch (error) {
        fault.textContent = FAULTS[error.name] || error.message;
        fault.hidden = false;
      }
      button.disabled = false;
    });
  }
})();
`;
