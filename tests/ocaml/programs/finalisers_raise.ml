(* Finalisers that raise an exception, in the middle of collections that the program asks for and of others. The runtime tells of
   the beginning of such finalisers, and not of their end. *)

exception From_finaliser of int

let rec burn n acc = if n = 0 then acc else burn (n - 1) (string_of_int n :: acc)
let raising n = Gc.finalise (fun _ -> raise (From_finaliser n)) (ref n)
let quiet n = Gc.finalise (fun _ -> ignore (Sys.opaque_identity (burn 10_000 []))) (ref n)
let caught = ref 0

let protect collect =
  let rec again () = try collect () with From_finaliser _ -> incr caught; again () in
  again ()

let () =
  for n = 1 to 20 do
    raising n;
    quiet n;
    protect Gc.full_major;
    raising n;
    protect Gc.compact;
    raising n;
    protect (fun () -> ignore (Sys.opaque_identity (burn 50_000 [])))
  done;
  protect Gc.full_major;
  Printf.printf "caught %d\n" !caught
