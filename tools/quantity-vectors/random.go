package main

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

const (
	randomParses  = 1500
	randomStrings = 500
	randomTwos    = 1500
)

// randomTexts is well-formed texts of every shape, and texts that are only made of the right characters.
func randomTexts() []string {
	random := rand.New(rand.NewPCG(1, 2))
	var texts []string
	for range randomParses {
		texts = append(texts, randomQuantity(random, 24, 14))
	}
	const characters = "0123456789.+-" + suffixLetters
	for range randomStrings {
		var text strings.Builder
		for range 1 + random.IntN(6) {
			text.WriteByte(characters[random.IntN(len(characters))])
		}
		// Only a long negative exponent is dangerous to the library, and six characters have no room for one
		// with more than four digits.
		texts = append(texts, text.String())
	}
	return texts
}

func randomPairs() []pair {
	random := rand.New(rand.NewPCG(3, 4))
	var pairs []pair
	for range randomTwos {
		a := randomQuantity(random, 15, 10)
		b := randomQuantity(random, 15, 10)
		// Neighbours are where a comparison goes wrong.
		if random.IntN(5) == 0 {
			b = a + strconv.Itoa(random.IntN(10))
			if strings.ContainsAny(a, suffixLetters) {
				b = strings.TrimLeft(a, "+-")
			}
		}
		pairs = append(pairs, pair{a, b})
	}
	return pairs
}

// randomQuantity is a well-formed text with up to the given numbers of digits before and after the point.
func randomQuantity(random *rand.Rand, whole, fraction int) string {
	text := signs[random.IntN(len(signs))] + randomDigits(random, 1+random.IntN(1+random.IntN(whole)))
	if random.IntN(2) == 0 {
		text += "." + randomDigits(random, random.IntN(1+random.IntN(fraction)))
	}
	if random.IntN(6) == 0 {
		return text + "e" + strconv.Itoa(random.IntN(26)-13)
	}
	return text + suffixes[random.IntN(16)]
}

// randomDigits likes runs of zeros and nines, where carrying and trailing zeros matter.
func randomDigits(random *rand.Rand, count int) string {
	var digits strings.Builder
	for digits.Len() < count {
		switch random.IntN(4) {
		case 0:
			digits.WriteString(strings.Repeat("0", min(1+random.IntN(4), count-digits.Len())))
		case 1:
			digits.WriteString(strings.Repeat("9", min(1+random.IntN(4), count-digits.Len())))
		default:
			digits.WriteByte(byte('0' + random.IntN(10)))
		}
	}
	return digits.String()
}
