export const GO = `// Go. header: Service-Signature, body: the raw bytes, secret: whsec_…
package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"time"
)

var form = regexp.MustCompile("^t=([0-9]{1,12}),v1=([0-9a-f]{64})$")

func IsGenuine(header string, body []byte, secret string) bool {
	match := form.FindStringSubmatch(header)
	if match == nil {
		return false
	}
	t, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil || time.Since(time.Unix(t, 0)).Abs() > 300*time.Second {
		return false
	}
	given, err := hex.DecodeString(match[2])
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(match[1] + "."))
	mac.Write(body)
	return hmac.Equal(mac.Sum(nil), given)
}
`;
