import { readKeys } from '../config';
import { readPairs } from '../keys/recipient-files';
import { byName, followPairs } from '../keys/recipient-rings';
import { followKeys } from '../keys/ring';
import { createSealer } from '../keys/seal';
import type { CurrentKeys } from './reseal';
import type { CurrentSealer, ResealDeps } from './resealing';

/** Places of the keys, which were found usable. */
interface KeyPlaces {
  keysFile: string;
  /** Folder of the rings that recipients have of their own; undefined without any. */
  keysDir: string | undefined;
}

/** Makes the sealers of an installation: one that opens everything, and those of recipients. */
export function sealersOf({
  keysFile,
  keysDir,
}: KeyPlaces): CurrentSealer & Pick<ResealDeps, 'recipients'> {
  const { current: kid } = readKeys(keysFile).seal;
  const own = followKeys(keysFile);
  if (keysDir === undefined) {
    const sealer = createSealer(own);
    return { sealer, kid, recipients: { sandbox: { sealer, kid }, live: { sealer, kid } } };
  }
  const [sandbox, live] = [
    followPairs(keysDir, 'sandbox', 'private'),
    followPairs(keysDir, 'live', 'private'),
  ];
  return {
    sealer: createSealer(byName([sandbox, live, own])),
    kid,
    recipients: {
      sandbox: { sealer: createSealer(sandbox), kid: readPairs(keysDir, 'sandbox').current },
      live: { sealer: createSealer(live), kid: readPairs(keysDir, 'live').current },
    },
  };
}

/** Names the keys that seal now. */
export function currentKeys(places: KeyPlaces): CurrentKeys {
  const { kid, recipients } = sealersOf(places);
  return { kid, recipients: [recipients.sandbox.kid, recipients.live.kid] };
}
