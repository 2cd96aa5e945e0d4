import { Binary, type ClientSession, type Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { type Env, toEnv } from '../domain/environment';

interface LogoDocument {
  /** Account, environment and hash. */
  _id: string;
  account_id: string;
  env: Env;
  hash: string;
  image: Binary;
  replaced_at?: Date;
}

interface LogoOwner {
  account_id: string;
  livemode: boolean;
}

/** Open or cached pages may still load a replaced logo. */
const REPLACED_SECONDS = 86_400;

export function createLogoStore(db: Db) {
  const logos = db.collection<LogoDocument>('brand_logos');
  return {
    ensureIndexes: indexBuilder(logos, [
      { key: { hash: 1 }, name: 'hash' },
      { key: { replaced_at: 1 }, name: 'replaced', expireAfterSeconds: REPLACED_SECONDS },
    ]),
    read: async (hash: string): Promise<Buffer | null> => {
      const logo = await logos.findOne({ hash }, { projection: { image: 1 } });
      return logo === null ? null : Buffer.from(logo.image.buffer);
    },
    store: (
      { account_id, livemode }: LogoOwner,
      { hash, image }: { hash: string; image: Uint8Array },
      session: ClientSession,
    ) => {
      const env = toEnv(livemode);
      return logos.updateOne(
        { _id: `${account_id}/${env}/${hash}` },
        {
          $set: { account_id, env, hash, image: new Binary(image) },
          $unset: { replaced_at: '' },
        },
        { upsert: true, session },
      );
    },
    replace: (
      { account_id, livemode }: LogoOwner,
      hash: string,
      replaced_at: Date,
      session: ClientSession,
    ) =>
      logos.updateOne(
        { _id: `${account_id}/${toEnv(livemode)}/${hash}` },
        { $set: { replaced_at } },
        { session },
      ),
  };
}
