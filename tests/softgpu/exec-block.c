/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed blocks: random ones of every format and mode, with the texels that other
 * decoders made of them
 */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec/half.h"
#include "exec/texel-block.h"
#include "test.h"

/* clang-format off */
static const struct example {
	unsigned int block;
	const char *bytes;
	/* Texels: three floats of 16 bits for BC6H, otherwise four bytes. */
	const char *texels;
} examples[] = {
	{ TEXEL_BLOCK_BC7, "e7eee7615ef35f30e49b482e15cae750",
		"734d2fffb2f7eeff23f7dbffd4f7f2ff734d2fff73bf68ffb2f7eefff7f7f7ff73bf68"
		"ff73a35aff319421ffe2a919ff73f784ffffad18ffc5a61bffe2a919ff" },
	{ TEXEL_BLOCK_BC7, "07201e12617b0feda7e1647796ff022b",
		"088c8cff429d7fff9c7b08ff2ca59cff08547eff081b70ff2ca59cff868325ff08086b"
		"ff08086bffb8cf6bff18bdffff088c8cff76c8a8ffb8cf6bff18bdffff" },
	{ TEXEL_BLOCK_BC7, "ea8ed02a82a175930f2337cd3794c522",
		"330c66ff7c6f7fff8f6d96ff7c6f7fff3e7439ff2a7622ff3e7439ff3a0a4eff8f6d96"
		"ff330c66ff261197ff330c66ff1118e3ff2d0f7fff1e13b2ffb76ac3ff" },
	{ TEXEL_BLOCK_BC7, "0a006d6b1af0c0cbd625658aac2c9faa",
		"1f5b37ff78ae2fff988946ffb9615eff7b2e53ff988946ff889c3bffb9615effb61165"
		"ffb9615eff78ae2fff68c124ff7b2e53ffb9615eff889c3bffb9615eff" },
	{ TEXEL_BLOCK_BC7, "04d13c447e33051eeef95a60e56143d6",
		"42317bff7e79ceff9c9cf7ff6054a4ff42317bff7e79ceff6054a4ffff73adff3910ad"
		"ff3910adffdc55a0ff941884ff21c629ffdc55a0ffdc55a0ffb73691ff" },
	{ TEXEL_BLOCK_BC7, "c43bcad76c008a9b0a6b5fc933154a6d",
		"ef00c6ffbd73adffce29f7ffb600cbffb600cbffc841dfffce29f7ffef00c6ff6a843f"
		"ff6a843fffa56a5dffa56a5dffa56a5dff6a843fffde527bff319c21ff" },
	{ TEXEL_BLOCK_BC7, "e88404a897c525262e6a7c07bcbee841",
		"2e3c32ff045c6aff2e3c32ff2e3c32ff5e881cff5e881cff55b0b0ff55b0b0ff50c4f8"
		"ff55b0b0ff5e881cff5e881cff50c4f8ff50c4f8ff599c64ff50c4f8ff" },
	{ TEXEL_BLOCK_BC7, "f845c55d4e9f747f615164c6f728d718",
		"aec192ffba8371ff90c08fff395f19ffbbefc9ffba8371ffba8371ffbbefc9ff395f19"
		"ffaec192ffaec192ff395f19ffbbefc9ff648e53ffaec192ffa3fbb1ff" },
	{ TEXEL_BLOCK_BC7, "303713827ac883d7fb9659234074f525",
		"862142bdb42142bdd42142bd9521efcea521efce8621b6c88621b6c8a521efcec5217b"
		"c3e421efced421efcea5217bc3f321efceb421b6c8952142bd9521efce" },
	{ TEXEL_BLOCK_BC7, "906c68082389d2e47f1e175a90bc432f",
		"43b387924ebf869d63d6849d2d9b8a972d9b8a9d63d6849238a789a238a789a238a789"
		"a218848ca223908ba258ca859238a789a223908ba243b3879258ca859d" },
	{ TEXEL_BLOCK_BC7, "a046e6a9471109f3b79f110a26f6229f",
		"91d5315c95d53b6c91e9315c99c2447a99e9447a99d5447a8dfc284e99fc447a8de928"
		"4e95c23b6c8de9284e8dc2284e91fc315c91fc315c8dd5284e8de9284e" },
	{ TEXEL_BLOCK_BC7, "a0452526e7bc1642aeb42bf227d50fff",
		"8e89a3468e89a3468e8ca3468e85a3469289a95c9289a95c8e89a3469590af728e90a3"
		"468e90a3468e85a3468b859d308e90a3469290a95c9590af729590af72" },
	{ TEXEL_BLOCK_BC7, "40c3c20624292e3b83d5a9c6eae1ec2a",
		"0d6d453312772d5510733746157e1c6d13782a59137a265f1075334c157d1f68137a26"
		"5f168018720d6d453316801872157d1f6816801872137a265f0e6f4138" },
	{ TEXEL_BLOCK_BC7, "409e2cf60b7539fef88205bc9a496756",
		"736a636d647ebafc766754546e7182a1726c6a79796343396879a2d46a779ac86b7593"
		"bc6d738aad6d738aad736a636d6f707b94706e7388706e7388726c6a79" },
	{ TEXEL_BLOCK_BC7, "80e2ff7ba7cf8065dc666dc470a26b45",
		"ff4db6cfdb20c21bffff65d7db61e330db41d326ff4db6cfdb41d326ffc580d4ffff65"
		"d7db20c21bffc580d4db41d326db41d326ff879bd2db61e330ff879bd2" },
	{ TEXEL_BLOCK_BC7, "80feb314208d5639e6f18c6dd3c3fca1",
		"7d452ce7a1a434d4a64534c7b2d338cbb2d338cb7d452ce7a64534c7b2d338cba64534"
		"c7045d7db6045d7db6b2d338cb714d4cc1a64534c7395565bca1a434d4" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "7848183be437bc276566f3835b05f112",
		"462c43df419245b043fe436345ce442e408544eb44dd40a8462c43df419247a042c840"
		"3d472f431f404e460943e8421545d343f542e0447a453440b9464c43ce4071462c43df"
		"419247a042c8403d46bd4376406045e443f1429f462c43df4192" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "59738bb151c9722cd2c642e6e86403c0",
		"19ac15cc55bc0d59221e632d0d59221e632d16ac18cb5901045c2b1c6cfc19ac15cc55"
		"bc0a5a251d667210ae1ec95f8b0d33232d65a80d59221e632d0a5a251d667216ac18cb"
		"59010364292c66340364292c663419ac15cc55bc075b281c69b7" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "a2eda768323f6d7cc72c9ea48608b22a",
		"7348142250797339143c507a7339143c507a732414385094733b1431508a7364140250"
		"54732e1441509c72f6142e50cb7321145050ad732e1441509c7321145050ad732e1441"
		"509c734814225079736414025054733b1431508a732e1441509c" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "06e1afd78cf90e6f20db1158ab47f04c",
		"6d03724863826d067234637d6d03724863826d1171d063676d1d71da63856d2a71c263"
		"6f6d46718f63416d537177632b6d2a71c2636f6d3971a763576d03720a63b06d3971a7"
		"63576d60715f63156d3971a763576d1071f2639a6d1071f2639a" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "eafc2c71e09454839fc36a9b488bfe66",
		"7a72247c03857a4e24a003bb7a4e24a003bb7a4e24a003bb7a60248f03a17a84246b03"
		"6b7a7b247303787a57249703ae7a86240e040e7a7b247303787a72247c03857a4624a9"
		"03c87af0240e037b7acd240e03ab7a7b247303787a6a24850392" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "ce3a02c10e16cd3efb2f5521ead3ce89",
		"71fb015c5544721f027b54d9715b5a0a565371397bff578d71fb015c5544715b5a0a56"
		"5371922539546a71b503455331714a6b0556f071922539546a71922539546a716d4910"
		"55b671a3143f53cd714a6b0556f0714a6b0556f0715b5a0a5653" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "72f2fc41addef3a23762d60f85420b12",
		"48e078b74e154c84780449274fd278294a73496277e247ee477278da4dbe4a4e78944e"
		"6c52f4784c4bad4e15781649c44a4e78944e6c477278da4dbe4ec178274f7b4c847804"
		"4927477278da4dbe4d53784a4f244d53784a4f24477278da4dbe" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "764f740691a4b57dff35ff3e8065df0b",
		"38f56cbc3eac350a676a3d4636f26a003df4350a676a3d463c2771db3e913bd2709e3f"
		"b23bd2709e3fb235fe68b53d9d3cf872213fdc37e66b4b3e4b36f26a003df4350a676a"
		"3d463f8372fa43e341267386467a39e96e073f033bd2709e3fb2" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "dad351686f6e4577b15ca1a1636f6331",
		"4cc64f32576e4e8b50b154fa4f6e517153c04cc64f32576e514c530651294f6e517153"
		"c0506952465263493f52ef58ab531254864eb649505300565a49505300565a48e65296"
		"6482491a52ca5d8f48f752a7623149505300565a48e652966482" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "5e7a432d84c631ded74066ce093166b7",
		"234c0ec635f2208319ea6add219a158e5628223513224aa7208319ea6add234c0ec635"
		"f2234c0ec635f2219a158e5628544825c87918208319ea6add23d80c982b9822351322"
		"4aa70e592ac6317f0e592ac6317f19cb29f53d36210f17bc6083" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "a33baf6024f6360c13f64b615e3a6858",
		"3b922b1d43b13b922b1d43b1452f2ed242b155cb353840f74e5d325b41bd41402d4e43"
		"193b922b1d43b1452f2ed242b1540b348c412643002dfa42eb4c9d31af41eb3f812ca1"
		"434848ae302b4254452f2ed242b148ae302b425443002dfa42eb" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "4790301f44ec2731a7c8efdab5dc6bbf",
		"066c22875f2403051d0d61ec040a1eb26117021c1b9762aa00a2193763df011719f263"
		"8003051d0d61ec01a81adc6309058421115fe202901c52624b021c1b9762aa01a81adc"
		"630902901c52624b04f32027605900a2193763df02901c52624b" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "0b14665cd0e8b8bdcf63543007a52bcf",
		"433a43626027437c42d0615f430543d75f2a432d437d5feb431143bb5f65431e43a05f"
		"a142db44305e68430543d75f2a433a4362602742db44305e68431e43a05fa143634307"
		"60e8437042ec612442f843f25eee43a542776221437c42d0615f" },
	{ TEXEL_BLOCK_BC6H_UNSIGNED, "6fae848f3b51cf44a8bddd5ccf695e24",
		"21a46fe7089b21a66fe6089921a66fe5089921a66fe6089921a66fe5089921a66fe508"
		"9921a66fe5089921a46fe7089b21a76fe5089921a66fe5089921a56fe6089a21a56fe7"
		"089a21a76fe5089921a46fe7089b21a46fe7089b21a46fe7089b" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "ac9af03305b619768b99ac6ecf5d27c7",
		"33b5864cd5d733b586bed63f33b5855dd4fa33b5864cd5d733b5864cd5d733b5847bd4"
		"2933b5872fd6a8308f86e7d4a533b584ecd49133b5855dd4fa33b584ecd491344e8891"
		"d7c433b5872fd6a833b5847bd42934eb88d7d84733148805d6be" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "fd6d3dca0b3a377983e3cd1964c00532",
		"a1169250c0b9a0c9946fc4f6a1169250c0b9a03d983fcc97a1e88c98b548a0c9946fc4"
		"f6a0c9946fc4f6a1a28e80b918a1e88c98b548a0c9946fc4f6a1169250c0b9a1a28e80"
		"b9189ff8b16800009cb3ac809af995faa26bd26b9ff8b1680000" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "82808daed433e32717c551c5f156fd1d",
		"fb93d9ca4898363dda664882b5ffda07488fd8c8d9e84894fa58da53487afa42da9547"
		"defa58da53487afa4bda7b481bfa4bda7b481bfa54da60485bfa47da8947fcfa5dda46"
		"4898fa5dda464898fa54da60485bfa4bda7b481bfa3edaa347bf" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "c6fdd791cc9fbb92f78a91970d077d15",
		"823d724046c7825b722f46dd831671c4476281f9716f474082ba71f8472181f9716f47"
		"4082ac71fe467b822571924711825571b846db82d87221464b828171db46ab81a27129"
		"47a0825571b846db81f9716f4740828171db46ab82d87221464b" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "4ad1c71ba1cb19a32572dbf4807c1732",
		"ad366e4f1156ad006e3311a8ad126ef210fead0a6eea1136acdd6e2211dcad126ef210"
		"fead1b6efb10c5ad116e3c118ead116e3c118eacdd6ebd1258acee6ece11e7ad256e46"
		"1170ad126ef210feacf76ed711aead116e3c118ead486e57113c" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "ee497d3a19d5e93c681ab64f3fbae247",
		"26b657584bcf271e135e4adb27f6f85e48e6271e135e4adb20b2b63048f927f6f85e48"
		"e627f6f85e48e6268279564c4a20b233c44f1e20b294214af320b233c44f1e26827956"
		"4c4a20b277e2531220b277e2531220b2fa4e450620b2d83f46ff" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "d2e986d6ba4694417af63a9eb78c8b61",
		"52500d9f68f5423108a0659c3f9e05e769b338ac817474bc58ed0e3269d262540f046b"
		"0c3afc00ff710e44820b1461ef5f310ebe6aa34c0c0d14682438ac817474bc44820b14"
		"61ef58ed0e3269d24f2e0d59688c58ed0e3269d246d30d885e41" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "967a617f64141f048a84d90d1334718e",
		"a7d7beba3fb2a2c1c21e4316a634bfd140c9a4a1acc22e6cab1cbc8c3d84a4a1acc22e"
		"6ca52da9a02e49a644a35c2e04a52da9a02e49a4a1acc22e6ca52da9a02e49a406b03d"
		"2e93a4a1acc22e6ca2efb6812ed9a5b8a67e2e26a52da9a02e49" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "3a2c5278bff7f5b56badaffd44263de5",
		"5ac6d37acaf15c00d585c8145ac6d37acaf155bccb14d6b458a4db8ccb145698d63bc2"
		"1653cccef4b5c4547ad0b9b8c355d7d444bec15698d63bc2165698d63bc21657f5d9c6"
		"c8145ac6d37acaf15c00d585c8145d3ad790c53855bccb14d6b4" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "7ee3d984c74dbc4ea6945edabd31eca5",
		"2fb6d01a35d3064ce3a954e34b901930b830ac33bff096c4064ce3a954e32fb6d01a35"
		"d3a0f0f6307250ac33bff096c456f2bd9318668d52ecec63996a90b45009b08d52ecec"
		"63998d52ecec63992fb6d01a35d356f2bd931866064ce3a954e3" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "232addf8ed9904269e6d299bfda79049",
		"153a3d1398d4051730c98ea19d3116aa070c1d4c43389dee051730c98ea13f955d57b3"
		"9c8d0f22f58326051730c98ea19d3116aa070caf5908d71287153a3d1398d484fd291a"
		"884051bd6b2bbf17051730c98ea1051730c98ea12f73510ca969" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "67b7a7bb3ca5e18ee09ceaa271cc7f2b",
		"35b4957e495248a9b1142f8d45d2acf0336b41b6a6f73900434ba94336db48a9b1142f"
		"8d388d99a14575434ba94336db36f89755479a3f2fa3493c6f45d2acf0336b45d2acf0"
		"336b49edb2eb2dd53f2fa3493c6f448eab1a3523388d99a14575" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "abbb0cbacac663bcc74f5a5a2de8900b",
		"1c6ebc25a76c1b07bb11a31c1a8cbab3a1a21c48bc08a6f81b53bb4ba4041c22bbeba6"
		"831b53bb4ba4041c22bbeba6831ae2baf4a2a71c94bc42a7e01ba8bb8da50a1ab2bad0"
		"a2161ce9bc84a8e61b82bb70a4951b2dbb2ea3901ce9bc84a8e6" },
	{ TEXEL_BLOCK_BC6H_SIGNED, "6f1d51970bd8209c2bab298c35a02b0d",
		"0c830a4eb0a60c830a4db0a40c840a50b0a90c840a50b0a80c840a50b0a80c830a4db0"
		"a40c840a51b0a90c840a4fb0a70c830a4eb0a60c830a4db0a50c830a4cb0a30c840a50"
		"b0a80c840a50b0a90c830a4db0a40c840a51b0aa0c830a4cb0a3" },
	{ TEXEL_BLOCK_BC1, "4931d87d70faadeb",
		"31284aff31284aff000000007bbac6ff567188ff567188ff00000000000000007bbac6"
		"ff00000000567188ff567188ff00000000567188ff567188ff00000000" },
	{ TEXEL_BLOCK_BC1, "17d2b201c12ded0c",
		"003494ffd641bdffd641bdff4738a1ff003494ff4738a1ff8e3cafffd641bdff003494"
		"ff4738a1ff8e3cafff4738a1ffd641bdff4738a1ffd641bdffd641bdff" },
	{ TEXEL_BLOCK_BC1, "a468c055c7d9958c",
		"5a820bff52ba00ff6b1421ff5a820bff52ba00ff624b16ff52ba00ff5a820bff52ba00"
		"ff52ba00ff52ba00ff624b16ff6b1421ff5a820bff6b1421ff624b16ff" },
	{ TEXEL_BLOCK_BC1, "ea08f612a037655e",
		"081c52ff081c52ff0c3c83ff0c3c83ff00000000105db5ff00000000081c52ff105db5"
		"ff105db5ff0c3c83ff105db5ff0c3c83ff00000000105db5ff105db5ff" },
	{ TEXEL_BLOCK_BC2, "ce589ff585f8ceaf2ff771cc196f44c5",
		"ce8e8ceee9c980ccce8e8c88f7e77b55dbab86ffdbab8699e9c98055ce8e8cfff7e77b"
		"55ce8e8c88f7e77b88ce8e8cffce8e8ceece8e8cccf7e77bffdbab86aa" },
	{ TEXEL_BLOCK_BC2, "8c1d7905f1bee67ed750d450a44a8443",
		"5218bdcc5218a5885218b5dd5218b5115218b5995218b5775218bd555218a5005218bd"
		"115218a5ff5218bdee5218b5bb5218ad665218bdee5218bdee5218a577" },
	{ TEXEL_BLOCK_BC3, "881b4d5b00684c412ab48a31f5ef2a9b",
		"313052493130521b5d4c52495d4c52495d4c52495d4c5288896952885d4c5288896952"
		"88896952498969521bb586523a5d4c5259896952783130528889695278" },
	{ TEXEL_BLOCK_BC3, "0960d5622ee16a13d3fd509fa19fcf26",
		"9ceb844effba9c1adeca942bdeca9460bdda8c00bdda8c3d9ceb842bdeca9460bdda8c"
		"60bdda8c3dffba9c2bbdda8c4edeca94009ceb8400deca943dffba9c09" },
	{ TEXEL_BLOCK_BC3, "9cef22b8264736c9ec3ee306c1f37996",
		"00df18ac39df63cd39df639c13df31cd13df31bd39df63de13df31ef13df31ef00df18"
		"ff26df4a9c13df31ef00df18bd26df4abd00df18ac00df18ac26df4a00" },
	{ TEXEL_BLOCK_BC4_UNSIGNED, "3aea05694d94c098",
		"c60000ff3a0000ffa30000ffa30000ff000000ff5d0000ff800000ff5d0000ffa30000"
		"ff5d0000ff5d0000ff3a0000ffa30000ffea0000ff000000ffa30000ff" },
	{ TEXEL_BLOCK_BC4_UNSIGNED, "a89e8cf0a9e4c32f",
		"a30000ff9e0000ffa60000ffa80000ff9f0000ffa50000ffa60000ffa20000ffa30000"
		"ffa30000ff9f0000ff9e0000ffa30000ff9f0000ffa50000ff9e0000ff" },
	{ TEXEL_BLOCK_BC4_UNSIGNED, "ed122e337410503f",
		"500000ff6f0000ff8f0000ff120000ffae0000ffed0000ff6f0000ffae0000ffed0000"
		"ffcd0000ffed0000ffed0000ff6f0000ff500000ff310000ff120000ff" },
	{ TEXEL_BLOCK_BC4_UNSIGNED, "c5f7a9d307cda27d",
		"f70000ffed0000ff000000fff70000ffed0000ffff0000fff70000ffc50000ffed0000"
		"fff70000ffd90000fff70000ffcf0000ffd90000ffff0000ffd90000ff" },
	{ TEXEL_BLOCK_BC5_UNSIGNED, "c168aa963451819877b44865640d652a",
		"b47700ff8eb400ffb4a700ffa78300ff680000ff687700ff8eb400ff688f00ff68a700"
		"ffb4b400ff8e9b00ffc18300ffc10000ff689b00ff818300ff9ab400ff" },
	{ TEXEL_BLOCK_BC5_UNSIGNED, "457df4d5aaa82eb888ed3fe7457a2087",
		"66ff00ff00ff00ffffc400ff50b000ff710000ff71b000ff50ed00ff719c00ff459c00"
		"ff71ff00ff50ed00ffff8800ff509c00ff450000ff00ed00ff71c400ff" },
};
/* clang-format on */

static unsigned int number_at(const char *text, unsigned int n_digits)
{
	unsigned int number = 0;

	for (unsigned int i = 0; i < n_digits; i++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, text[i]);

		check(at && *at);
		number = number << 4 | (unsigned int)(at - digits);
	}
	return number;
}

/* BC6H and BC7 are defined to the bit; of the others the rounding is not. */
static float tolerance_of(unsigned int block)
{
	return block >= TEXEL_BLOCK_BC6H_UNSIGNED ? 1e-6f : 2.0f / 255.0f;
}

static void check_example(const struct example *example)
{
	bool is_half = example->block == TEXEL_BLOCK_BC6H_UNSIGNED ||
		       example->block == TEXEL_BLOCK_BC6H_SIGNED;
	uint8_t bytes[16] = {};
	uint32_t size = texel_block_size(example->block);

	check_eq(strlen(example->bytes), 2 * size);
	check_eq(strlen(example->texels), is_half ? 16 * 3 * 4 : 16 * 4 * 2);
	for (unsigned int i = 0; i < size; i++)
		bytes[i] = (uint8_t)number_at(example->bytes + 2 * i, 2);
	for (unsigned int i = 0; i < 16; i++) {
		float got[4], want[4] = { 0, 0, 0, 1 };

		texel_block_read(example->block, bytes, i, got);
		for (unsigned int k = 0; k < (is_half ? 3 : 4); k++)
			want[k] =
				is_half ? half_to_f32((uint16_t)number_at(
						  example->texels + (3 * i + k) * 4, 4))
					: (float)number_at(
						  example->texels + (4 * i + k) * 2, 2) /
						  255.0f;
		for (unsigned int k = 0; k < 4; k++)
			if (!(fabsf(got[k] - want[k]) <= tolerance_of(example->block)))
				test_fail(__FILE__, __LINE__,
					"block %s texel %u channel %u: %g, not %g",
					example->bytes, i, k, (double)got[k],
					(double)want[k]);
	}
}

TEST(blocks_are_decoded_as_by_others)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		check_example(&examples[i]);
}

/* The signed formats of numbers, by their definition. */
TEST(signed_numbers_reach_from_minus_one_to_one)
{
	/* 127 and -128, then indices 0 to 7; with the ends exchanged there is no -1. */
	uint8_t falling[8] = { 127, 128, 0x88, 0xc6, 0xfa, 0x88, 0xc6, 0xfa };
	uint8_t rising[8] = { 128, 127, 0x88, 0xc6, 0xfa, 0x88, 0xc6, 0xfa };
	float got[4];

	for (unsigned int i = 0; i < 8; i++) {
		double down = i < 2 ? 1.0 - 2.0 * i : 1.0 - 2.0 * (i - 1) / 7.0;
		double up = i < 2 ? 2.0 * i - 1.0 : 2.0 * (i - 1) / 5.0 - 1.0;

		if (i > 5)
			up = i == 6 ? -1.0 : 1.0;
		texel_block_read(TEXEL_BLOCK_BC4_SIGNED, falling, i, got);
		check(fabs((double)got[0] - down) < 1e-6 && got[1] == 0.0f);
		texel_block_read(TEXEL_BLOCK_BC4_SIGNED, rising, i + 8, got);
		check(fabs((double)got[0] - up) < 1e-6 && got[3] == 1.0f);
	}
}

TEST(blocks_have_eight_or_sixteen_bytes)
{
	unsigned int n_small = 0;

	check_eq(texel_block_size(TEXEL_BLOCK_NONE), 0);
	check_eq(texel_block_size(_TEXEL_BLOCK_N), 0);
	for (unsigned int i = 1; i < _TEXEL_BLOCK_N; i++) {
		uint32_t size = texel_block_size(i);

		check(size == 8 || size == 16);
		n_small += size == 8;
	}
	check_eq(n_small, 3);
}

/* Of BC7 that is a transparent black, of BC6H a black. */
TEST(a_reserved_mode_has_no_colour)
{
	static const uint8_t bytes[] = { 0x13, 0x17, 0x1b, 0x1f };
	uint8_t block[16];
	float got[4];

	memset(block, 0xff, sizeof(block));
	block[0] = 0;
	texel_block_read(TEXEL_BLOCK_BC7, block, 3, got);
	for (unsigned int k = 0; k < 4; k++)
		check(got[k] == 0.0f);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		block[0] = bytes[i];
		texel_block_read(TEXEL_BLOCK_BC6H_SIGNED, block, 3, got);
		for (unsigned int k = 0; k < 4; k++)
			check(got[k] == (k == 3 ? 1.0f : 0.0f));
	}
}

/* Reserved modes, and any bytes: each channel is a number, of BC6H also an infinite one.
 */
TEST(all_bytes_are_a_block)
{
	uint8_t bytes[16];
	uint64_t seed = 1;
	float got[4];

	for (unsigned int n = 0; n < 20000; n++) {
		for (unsigned int i = 0; i < 16; i++) {
			seed = seed * UINT64_C(6364136223846793005) +
			       1442695040888963407u;
			bytes[i] = (uint8_t)(seed >> 56);
		}
		for (unsigned int block = 0; block < _TEXEL_BLOCK_N; block++) {
			texel_block_read(block, bytes, n % 16, got);
			for (unsigned int k = 0; k < 4; k++)
				check(got[k] == got[k]);
		}
	}
}
