export const JAVA = `// Java 17. header: Service-Signature, body: the raw bytes, secret: whsec_…
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.HexFormat;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

final class Webhooks {
  private static final Pattern FORM = Pattern.compile("t=([0-9]{1,12}),v1=([0-9a-f]{64})");

  static boolean isGenuine(String header, byte[] body, String secret)
      throws GeneralSecurityException {
    var match = FORM.matcher(header == null ? "" : header);
    if (!match.matches()) return false;
    long age = Math.abs(Instant.now().getEpochSecond() - Long.parseLong(match.group(1)));
    if (age > 300) return false;
    var mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    mac.update((match.group(1) + ".").getBytes(StandardCharsets.UTF_8));
    return MessageDigest.isEqual(mac.doFinal(body), HexFormat.of().parseHex(match.group(2)));
  }
}
`;
